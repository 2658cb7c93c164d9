#pragma once

#include "instrumentation/clock.h"

namespace shardscope::collector {

/// Seconds on this process's monotonic clock: leases, timeouts, intervals.
[[nodiscard]] inline double now_s() {
  return static_cast<double>(instrumentation::monotonic_now_ns()) * 1e-9;
}

}  // namespace shardscope::collector
