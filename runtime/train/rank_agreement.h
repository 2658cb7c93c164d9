// Before the first step the ranks compare the settings that must be equal. A difference would result in wrong
// weights or in a hang until the time-out.
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/comm/communicator.h"
#include "runtime/config/config.h"
#include "runtime/data/stream.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/settings_agreement.h"
#include "runtime/train/options.h"

namespace shardscope::train {

/// The inputs of a rank's run, read from its own files.
struct RunParts {
  const char* version;
  const Options& options;
  const config::TrainingConfig& config;
  const plan::ModelPlan& model;
  const data::BatchStream& data;
  const data::BatchStream* evaluation = nullptr;         ///< null without evaluation
  const checkpoint::CheckpointReader* resume = nullptr;  ///< --resume
  const checkpoint::WeightReader* init = nullptr;        ///< --init
};

/// All settings that determine weights, collectives and the end of the run: program, model, options, data,
/// initial weights, then the configuration. Reads the whole file of --init once, for its checksum.
[[nodiscard]] std::vector<plan::RankSetting> compared_settings(const RunParts& run);

/// Throws std::invalid_argument, with the same text on every rank, if a rank differs from rank 0: key, ranks,
/// both values. Uses nothing that the settings determine: no device, group or size. Collective.
void check_same_settings(const std::vector<plan::RankSetting>& mine, comm::Communicator& control);

}  // namespace shardscope::train
