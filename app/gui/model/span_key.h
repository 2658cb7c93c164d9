// Cache key of results computed for one span.
#pragma once

#include <cstdint>

#include "app/store/store.h"

namespace shardscope::gui {

struct SpanKey {
  SpanKey(const store::Store& store, store::LaneId of_lane, const store::Span& span)
      : lane(of_lane),
        depth(span.depth),
        begin_ns(span.begin_ns),
        end_ns(span.end_ns),
        revision(store.revision()) {}

  store::LaneId lane;
  std::uint8_t depth;
  std::int64_t begin_ns, end_ns;
  std::uint64_t revision;  ///< of the store
  friend bool operator==(const SpanKey&, const SpanKey&) = default;
};

}  // namespace shardscope::gui
