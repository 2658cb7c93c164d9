// The optimizer's parameter groups: which parameter has which settings. A group has its own flat buffer in
// stages 0 to 2, with its own padding, and its own sub-groups in stage 3; buckets of gradients are shared
// (docs/zero.md S2a). Groups are numbered in the order of their rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// Which trained parameters belong to a group: those that match all that is given, and are in no group
/// before.
struct ParamGroupRule {
  std::string name;                      ///< for people: "no_decay"
  std::vector<std::string> params;       ///< patterns of names, any of them: "*.bias"; empty: every name
  std::optional<std::int64_t> min_dims;  ///< of the shape; a matrix has 2
  std::optional<std::int64_t> max_dims;
};

/// Sets ParamPlan::group of every trained parameter. Without rules there is one group. Throws
/// std::invalid_argument on a parameter that no rule takes and on a rule that takes none.
void assign_param_groups(ModelPlan& model, std::span<const ParamGroupRule> rules);

/// Trained parameters, group after group, each in parameter order: how the optimizer holds them.
[[nodiscard]] std::vector<ParamId> trained_by_group(const ModelPlan& model);

}  // namespace shardscope::plan
