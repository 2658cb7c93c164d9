// Loads the inputs of a run: the model and the configuration that the options name.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/config/config.h"
#include "runtime/plan/model_plan.h"
#include "runtime/train/options.h"

namespace shardscope::train {

/// Throws std::invalid_argument: no such model, or one that the configuration does not fit.
[[nodiscard]] plan::ModelPlan load_model(const Options& options, const config::TrainingConfig& config);
/// "auto" values depend on the model's width. Throws config::ConfigError, or std::invalid_argument as
/// load_model.
[[nodiscard]] config::TrainingConfig load_training_config(const Options& options, std::uint32_t world);
/// The option, or an id generated on rank 0; the same on every rank. Collective.
[[nodiscard]] std::string agree_on_run_id(const Options& options, comm::Communicator& comm);

}  // namespace shardscope::train
