// Reads the spans of a lane or rank in an interval of time.
#pragma once

#include <cstdint>

#include "app/store/checkpoint_span.h"
#include "app/store/store.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// Calls visit(span) for every span of the lane that overlaps [begin, end), depth by depth.
template <typename Visitor>
void for_each_span(const store::Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                   Visitor&& visit) {
  const std::uint8_t depths = store.depth_count(lane);
  for (std::uint8_t depth = 0; depth < depths; ++depth) {
    store.for_each_span(lane, depth, begin_ns, end_ns, visit);
  }
}

using store::is_checkpoint;

/// A step on one rank.
struct StepWindow {
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

}  // namespace shardscope::analysis
