#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::store {

/// Nanoseconds on the collector's clock: in the store `ticks` is no longer the rank's own.
[[nodiscard]] inline std::int64_t event_time(const instrumentation::Event& event) noexcept {
  return static_cast<std::int64_t>(event.ticks);
}

}  // namespace shardscope::store
