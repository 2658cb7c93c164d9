// Passes a gate of the C interface on a thread that holds the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// May block the calling thread while a viewer holds the run: other threads (NCCL's watchdog, loaders) need
/// the GIL then, so it is released, but only if the gate may hold. One thread passes at a time, as the C
/// interface requires: a second one, such as a backward's, waits until the first one has passed.
inline int pass_gate(std::int32_t kind, std::uint32_t id) {
  static std::mutex passing;
  std::unique_lock turn(passing, std::try_to_lock);
  if (!turn.owns_lock()) {
    // Without a run nothing holds; in a forked child the thread that has the lock does not exist.
    if (shardscope_enabled(SHARDSCOPE_DETAIL_STEPS) == 0) return SHARDSCOPE_OK;
    const nanobind::gil_scoped_release others_run;
    turn.lock();
  }
  std::uint64_t ticket = 0;
  if (shardscope_gate_pass(kind, id, &ticket) != 1) return SHARDSCOPE_OK;
  const nanobind::gil_scoped_release others_run;
  return shardscope_gate_wait(kind, id, ticket);
}

}  // namespace shardscope::python
