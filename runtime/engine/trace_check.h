// Check that all ranks recorded the same trace (docs/zero.md C3).
#pragma once

#include "runtime/comm/communicator.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::engine {

/// Compares the trace that `scheduler` has just completed with those of the other ranks. Collective over
/// `control`, on the host, once per recording: three small exchanges. Throws std::runtime_error with the same
/// text on every rank if one differs from rank 0.
void check_same_trace(const plan::FetchScheduler& scheduler, const plan::ModelPlan& model,
                      comm::Communicator& control);

}  // namespace shardscope::engine
