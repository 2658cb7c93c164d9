#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::store {

/// Time of an event in the store, in nanoseconds on the collector's clock: the store has replaced the
/// rank's own ticks.
[[nodiscard]] inline std::int64_t event_time(const instrumentation::Event& event) noexcept {
  return static_cast<std::int64_t>(event.ticks);
}

}  // namespace shardscope::store
