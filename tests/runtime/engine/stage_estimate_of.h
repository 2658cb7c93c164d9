// What `shardscope estimate all --model --config` is asked about a run of a test.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/config/config.h"
#include "runtime/plan/stage_estimate.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {

/// Of `model`, which must outlive the answer, over one node of `world` ranks, with `config`'s
/// zero_optimization.
inline plan::StageEstimateInput stage_estimate_of(const plan::ModelPlan& model, const Json& config,
                                                  std::uint32_t world, const std::string& type) {
  config::ParseOptions parse;
  parse.world = world;
  plan::StageEstimateInput input;
  input.model = &model;
  input.gpus_per_node = world;
  input.bytes = type == "fp32" ? plan::kFp32 : plan::kMixedPrecision;
  input.zero = config::parse_config(config.dump(), parse).zero;
  return input;
}

}  // namespace shardscope::engine::testing
