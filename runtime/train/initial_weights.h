// The initial weights: computed or read from a file, the whole model or one part at a time, as configured.
#pragma once

#include <string>

#include "runtime/checkpoint/weights.h"
#include "runtime/comm/communicator.h"
#include "runtime/config/config.h"
#include "runtime/device/device.h"
#include "runtime/engine/engine.h"
#include "runtime/plan/model_plan.h"
#include "runtime/train/options.h"

namespace shardscope::train {

struct InitialWeights {
  const Options& options;
  const config::TrainingConfig& config;
  const plan::ModelPlan& model;
  const checkpoint::WeightReader* init = nullptr;  ///< --init
  device::Device& device;
  comm::Communicator& control;
};

/// Collective. Each rank creates the part that it owns, in pieces. With shardscope.zero_init false it first
/// creates the whole model, fp32 in host memory, which is freed when its part has been copied (docs/zero.md
/// M6). With compat.broadcast_weights rank 0's values are broadcast (P2): of the whole model, or of one
/// parameter at a time.
void set_initial_weights(const InitialWeights& from, engine::Engine& engine);

/// Description for the log; empty for the default.
[[nodiscard]] std::string describe_initial_weights(const config::TrainingConfig& config);

}  // namespace shardscope::train
