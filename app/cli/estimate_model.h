// The number of parameters of an estimate: given, read from a file of weights, or counted from a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/plan/estimator.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::cli {

struct ModelSource {
  plan::EstimateInput input;
  std::string params, largest_layer;  ///< as given: 2851598336, 2851e6
  std::string formula = "doc", model;
  std::string weights;  ///< file of a state_dict: its size gives the number of parameters
  std::int64_t weight_bytes = 4;
};

/// The model of --model. nullopt without one, or where the model is only counted; then the counts are in
/// `source.input`. Throws UserError.
[[nodiscard]] std::optional<plan::ModelPlan> take_model(ModelSource& source);

}  // namespace shardscope::cli
