// Bus traffic of a rank in a collective: one formula for the figures shown and for the emulated link.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// busbw / algbw of an operation among `ranks` ranks: a rank's traffic per byte of S (metrics.md 2.3, NCCL
/// tests). 0 for a single rank and for a barrier, which transfer nothing.
[[nodiscard]] constexpr double bus_factor(CollectiveOp op, std::uint32_t ranks) noexcept {
  if (ranks <= 1) return 0;
  const double n = ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      return (n - 1) / n;
    case CollectiveOp::reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::send:
    case CollectiveOp::receive:
      return 1;
    case CollectiveOp::barrier:
      return 0;
  }
  return 0;
}

}  // namespace shardscope::instrumentation
