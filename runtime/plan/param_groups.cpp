#include "runtime/plan/param_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <stdexcept>

namespace shardscope::plan {
namespace {

bool takes(const ParamGroupRule& rule, const ParamPlan& param) {
  const auto dims = static_cast<std::int64_t>(param.shape.size());
  if (rule.min_dims && dims < *rule.min_dims) return false;
  if (rule.max_dims && dims > *rule.max_dims) return false;
  return rule.params.empty() ||
         std::any_of(rule.params.begin(), rule.params.end(), [&param](const std::string& pattern) {
           return fnmatch(pattern.c_str(), param.name.c_str(), 0) == 0;
         });
}

}  // namespace

void assign_param_groups(ModelPlan& model, std::span<const ParamGroupRule> rules) {
  std::vector<std::size_t> taken(rules.size(), 0);
  for (ParamPlan& param : model.params) {
    param.group = 0;
    if (!param.trainable || rules.empty()) continue;
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&param](const ParamGroupRule& one) { return takes(one, param); });
    if (rule == rules.end()) {
      throw std::invalid_argument("shardscope.param_groups: no group takes parameter " + param.name +
                                  "; add a last group without params, min_dims and max_dims for the rest");
    }
    param.group = static_cast<std::uint32_t>(rule - rules.begin());
    ++taken[param.group];
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (taken[i] > 0) continue;
    throw std::invalid_argument("shardscope.param_groups[" + std::to_string(i) + "] (" + rules[i].name +
                                ") takes no trained parameter of model " + model.spec.name +
                                " that no group before it has; change its rule or remove it");
  }
}

std::vector<ParamId> trained_by_group(const ModelPlan& model) {
  std::vector<ParamId> params;
  for (const ParamPlan& param : model.params) {
    if (param.trainable) params.push_back(param.id);
  }
  std::stable_sort(params.begin(), params.end(), [&model](ParamId a, ParamId b) {
    return model.params[raw(a)].group < model.params[raw(b)].group;
  });
  return params;
}

}  // namespace shardscope::plan
