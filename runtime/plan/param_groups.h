// The optimizer's parameter groups: sets of parameters with their own settings. A group has its own flat
// buffer in stages 0 to 2, with its own padding, and its own sub-groups in stage 3; buckets of gradients are
// shared (docs/zero.md S2a). Groups are numbered in the order of their rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// A trained parameter belongs to the first group whose rule it matches in every condition given.
struct ParamGroupRule {
  std::string name;                 ///< display name: "no_decay"
  std::vector<std::string> params;  ///< name patterns, one of which must match: "*.bias"; empty: every name
  std::optional<std::int64_t> min_dims;  ///< of the shape; a matrix has 2
  std::optional<std::int64_t> max_dims;
};

/// Sets ParamPlan::group of every trained parameter. Without rules there is one group. Throws
/// std::invalid_argument on a parameter that matches no rule and on a rule without a parameter.
void assign_param_groups(ModelPlan& model, std::span<const ParamGroupRule> rules);

/// Trained parameters by group, in parameter order within a group: the optimizer's order.
[[nodiscard]] std::vector<ParamId> trained_by_group(const ModelPlan& model);

}  // namespace shardscope::plan
