// Reading what a store holds of one lane or rank within a window of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "app/store/store.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// Calls visit(span) for every span of the lane that overlaps [begin, end), depth by depth.
template <typename Visitor>
void for_each_span(const store::Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                   Visitor&& visit) {
  const std::uint8_t depths = store.depth_count(lane);
  for (std::uint8_t depth = 0; depth < depths; ++depth) {
    const auto [first, last] = store.visible(lane, depth, begin_ns, end_ns);
    const auto spans = store.spans(lane, depth);
    for (std::size_t i = first; i < last; ++i) visit(spans[i]);
  }
}

/// Instant events of a rank in [begin, end).
[[nodiscard]] inline std::span<const ev::Event> instants_within(const store::Store& store, std::uint32_t rank,
                                                                std::int64_t begin_ns, std::int64_t end_ns) {
  const auto all = store.instants(rank);
  const auto before = [](const ev::Event& event, std::int64_t t) {
    return static_cast<std::int64_t>(event.ticks) < t;
  };
  const auto first = std::lower_bound(all.begin(), all.end(), begin_ns, before);
  const auto last = std::lower_bound(first, all.end(), end_ns, before);
  return {first, last};
}

[[nodiscard]] inline bool is_checkpoint(const store::Span& span) noexcept {
  return span.kind == ev::EventKind::phase_begin &&
         (span.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_save) ||
          span.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_load));
}

/// A step as one rank saw it.
struct StepWindow {
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

}  // namespace shardscope::analysis
