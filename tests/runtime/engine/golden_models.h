// The models that golden files name.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/plan/model_spec.h"

namespace shardscope::engine::testing {

/// The tree that `file` has under this name (docs/models.md), or samples/models/NAME.json, or a built-in
/// model. A sample whose name ends in "_visit" runs its blocks as `run` says ("block_visit_per_iteration": a
/// list of blocks for each micro-step), and all of them once where it says nothing. Throws
/// std::invalid_argument on a name that is none of these and on a block that the model does not have.
[[nodiscard]] plan::ModelSpec golden_spec(const nlohmann::json& file, const std::string& name,
                                          const nlohmann::json& run);

/// Whether golden_spec() knows a model of this name.
[[nodiscard]] bool knows_model(const nlohmann::json& file, const std::string& name);

}  // namespace shardscope::engine::testing
