#include "app/analysis/gpu_spans.h"

#include <algorithm>

#include "app/analysis/spans.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;

/// A longer delay is corrupt data.
constexpr std::int64_t kLongestDelayNs = 1'000'000'000'000;

}  // namespace

std::optional<std::int64_t> delay_of(const store::Span& span) {
  const std::int64_t delay_ns = ev::as<EventKind::gpu_begin>(span).delay_ns;
  if (delay_ns < -kLongestDelayNs || delay_ns > kLongestDelayNs) return std::nullopt;  // includes kNoDelay
  return delay_ns;
}

std::optional<std::int64_t> launch_of(const store::Span& span) {
  const auto delay = delay_of(span);
  return delay ? std::optional(span.begin_ns - *delay) : std::nullopt;
}

std::vector<store::Span> gpu_spans(const store::Store& store, store::LaneId lane, Interval window) {
  std::vector<store::Span> spans;
  for_each_span(store, lane, window.begin, window.end, [&](const store::Span& span) {
    if (span.kind == EventKind::gpu_begin) spans.push_back(span);
  });
  std::sort(spans.begin(), spans.end(),
            [](const store::Span& a, const store::Span& b) { return a.begin_ns < b.begin_ns; });
  return spans;
}

}  // namespace shardscope::analysis
