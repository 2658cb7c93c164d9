// One rank's training run, from the options to the last step.
#pragma once

#include "runtime/comm/world.h"
#include "runtime/engine/stop_signals.h"
#include "runtime/train/options.h"

namespace shardscope::train {

/// Runs one rank; a failure is sent to the other ranks and to the collector before it is rethrown.
/// Collective.
void train(const Options& options, comm::World& world, engine::StopSignals& signals);

}  // namespace shardscope::train
