#include "app/gui/model/span_family.h"

#include <algorithm>

#include "app/store/span_time.h"
#include "instrumentation/event.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

SpanFamily family_of(const store::Store& store, store::LaneId lane, const store::Span& span) {
  constexpr std::uint64_t kMostChildren = 20'000;
  SpanFamily out;
  if (!store.ready(lane, span.begin_ns, span.begin_ns + 1)) {
    out.read = false;
    return out;
  }
  for (std::uint8_t depth = span.depth; depth-- > 0;) {
    store.for_each_span(lane, depth, span.begin_ns, span.begin_ns + 1, [&](const store::Span& outer) {
      if (outer.begin_ns <= span.begin_ns) out.parents.push_back(outer);
    });
  }
  const auto depth = static_cast<std::uint8_t>(span.depth + 1);
  const store::SpanTime time = store::time_of(store, lane.rank, span);
  if (store.span_count(lane, depth, span.begin_ns, time.until_ns) > kMostChildren) return out;
  if (!store.ready(lane, span.begin_ns, time.until_ns)) {
    out.read = false;
    return out;
  }
  std::int64_t self_ns = time.running_ns;
  store.for_each_span(lane, depth, span.begin_ns, time.until_ns, [&](const store::Span& child) {
    if (child.begin_ns < span.begin_ns) return;
    ++out.children;
    if (child.kind == ev::EventKind::paused_begin) return;  // not part of the parent's time
    self_ns -= store::time_of(store, lane.rank, child).running_ns;
  });
  out.self_ns = std::max<std::int64_t>(self_ns, 0);
  return out;
}

const SpanFamily& FamilyCache::of(const store::Store& store, store::LaneId lane, const store::Span& span) {
  const SpanKey key(store, lane, span);
  if (key_ != key) {
    family_ = family_of(store, lane, span);
    ++computed_;
    key_ = family_.read ? std::optional(key) : std::nullopt;
  }
  return family_;
}

}  // namespace shardscope::gui
