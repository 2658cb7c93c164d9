// Before the first step the ranks compare what they must have alike. A difference would show as wrong
// weights, or as a wait that only its time limit ends.
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

/// What a rank's run is made of, once it has been read from its own files.
struct RunParts {
  const char* version;
  const Options& options;
  const config::TrainingConfig& config;
  const plan::ModelPlan& model;
  const data::BatchStream& data;
  const data::BatchStream* evaluation = nullptr;         ///< where it is evaluated
  const checkpoint::CheckpointReader* resume = nullptr;  ///< --resume
  const checkpoint::WeightReader* init = nullptr;        ///< --init
};

/// Everything that decides weights, collectives and when the run ends: program, model, options, data, initial
/// weights, then the configuration. Reads the whole file of --init once, for its checksum.
[[nodiscard]] std::vector<plan::RankSetting> compared_settings(const RunParts& run);

/// Throws std::invalid_argument, with the same text on every rank, where a rank differs from rank 0: key,
/// ranks, both values. Needs nothing that the settings decide: no device, no group, no size. Collective.
void check_same_settings(const std::vector<plan::RankSetting>& mine, comm::Communicator& control);

}  // namespace shardscope::train
