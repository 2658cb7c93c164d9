// The weights that training begins with: by a formula or from a file, as much of the model at a time as the
// configuration says.
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

/// Collective. Each rank makes the part that it owns, in pieces. With shardscope.zero_init false it first
/// makes the whole model, fp32 in host memory, which is freed when its part has moved (docs/zero.md M6). With
/// compat.broadcast_weights the values are rank 0's (P2): of the whole model, or of one parameter after the
/// other.
void set_initial_weights(const InitialWeights& from, engine::Engine& engine);

/// How, for the log; empty for the default.
[[nodiscard]] std::string describe_initial_weights(const config::TrainingConfig& config);

}  // namespace shardscope::train
