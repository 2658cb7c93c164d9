// Conversions that the collector and a viewer both apply before they add data to a store.
#pragma once

#include <algorithm>
#include <cstdint>

#include "app/store/store.h"

namespace shardscope::collector {

/// A store counts the events of the chunks added to it; a row that is ahead of the chunks would count twice.
[[nodiscard]] inline store::RankRow for_store(store::RankRow row) {
  row.events = row.dropped = row.lost_messages = 0;
  row.last_ns = 0;
  return row;
}

/// Converts collector clock to the store's run time; times before the run's first event become 0.
[[nodiscard]] inline std::int64_t in_run_time(std::int64_t at_ns, const store::Store& store) {
  if (store.event_count() == 0) return 0;
  return std::max<std::int64_t>(at_ns - store.origin_ns(), 0);
}

}  // namespace shardscope::collector
