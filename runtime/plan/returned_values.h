// How often a module that returned parameters is fetched in backward, as DeepSpeed's hooks do it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "runtime/plan/compat.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// DeepSpeed hangs its pre-backward hook on every tensor that a forward returns
/// (PreBackwardFunctionForModule), so a module is fetched once more for each parameter it returned (P11) that
/// a gradient comes back to: one that is trained and was read by what ran around the module. These fetches
/// come just before the module's own. Compat::shardscope needs one fetch only. Told of every forward, a
/// recomputation's too, in its order; backward meets the visits in reverse. Pure; one per rank. `model`
/// outlives it.
class ReturnedValues {
 public:
  ReturnedValues(const ModelPlan& model, Compat compat)
      : model_(model), counts_(compat != Compat::shardscope) {}

  /// A new iteration.
  void clear() {
    visits_.clear();
    latest_.clear();
  }
  /// The forward of `module` is through.
  void left(ModuleId module) {
    const std::vector<ParamId>& returns = model_.modules[raw(module)].returns;
    if (!counts_ || returns.empty()) return;
    std::vector<std::set<ParamId>>& visits = visits_[module];
    visits.emplace_back();
    for (const ParamId param : returns) latest_[param] = {module, visits.size() - 1};
  }
  /// A functional layer uses `param`: what was returned last, if anything was.
  void read(ParamId param) {
    const auto found = latest_.find(param);
    if (found == latest_.end() || !model_.params[raw(param)].trainable) return;
    std::vector<std::set<ParamId>>& visits = visits_[found->second.module];
    if (found->second.visit < visits.size()) visits[found->second.visit].insert(param);
  }
  /// Pre-backward of the last visit of `module` that is not yet gone back through: fetches beside its own.
  [[nodiscard]] std::size_t further_fetches(ModuleId module) {
    const auto found = visits_.find(module);
    if (found == visits_.end() || found->second.empty()) return 0;
    const std::size_t fetches = found->second.back().size();
    found->second.pop_back();
    return fetches;
  }

 private:
  struct Returned {
    ModuleId module;
    std::size_t visit;
  };

  const ModelPlan& model_;
  bool counts_;
  std::map<ModuleId, std::vector<std::set<ParamId>>> visits_;  ///< of each, the parameters read since
  std::map<ParamId, Returned> latest_;
};

}  // namespace shardscope::plan
