// How often DeepSpeed's hooks fetch a module in backward that returned parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/plan/compat.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/scheduler_compat.h"

namespace shardscope::plan {

/// DeepSpeed attaches its pre-backward hook to every tensor that a forward returns
/// (PreBackwardFunctionForModule), so a module is fetched once more for each parameter it returned (P11) that
/// receives a gradient: one that is trained and was read by a module around it. These fetches precede the
/// module's own. Compat::shardscope needs one fetch only. Call entered() and left() for every forward in its
/// order, a recomputation's too; backward visits them in reverse.
///
/// The forward of a checkpointed module runs without a graph: parameters returned by modules inside it have
/// no hooks then, but have them in its recomputation. For parameters returned by the checkpointed module
/// itself PyTorch passes a gradient of every trained one to the recomputation, zeros where it was not read.
/// Pure; one per rank. `model` outlives it.
class ReturnedValues {
 public:
  ReturnedValues(const ModelPlan& model, Compat compat)
      : model_(model),
        counts_(SchedulerCompat(compat).fetches_for_returned_values() &&
                std::any_of(model.modules.begin(), model.modules.end(),
                            [](const ModulePlan& module) { return !module.returns.empty(); })) {}

  /// A new iteration.
  void clear() {
    visits_.clear();
    begun_.clear();
    latest_.clear();
    recomputes_ = false;
  }
  /// The forward of a module begins.
  void entered() {
    if (counts_) begun_.push_back(visits_.size());
  }
  /// The forward of `module`, the innermost one, ends.
  void left(ModuleId module) {
    if (!counts_ || begun_.empty()) return;
    Visit visit{next_serial_++, module, begun_.back(), {}};
    begun_.pop_back();
    const bool crosses = begun_.empty() && std::exchange(recomputes_, false);
    for (const ParamId param : model_.modules[raw(module)].returns) {
      latest_[param] = visit.serial;
      if (crosses && model_.params[raw(param)].trainable) visit.read.insert(param);
    }
    visits_.push_back(std::move(visit));
  }
  /// The forward of the checkpointed `module` is about to run again.
  void recomputes(ModuleId module) {
    if (!counts_) return;
    begun_.clear();
    const auto visit = last_of(module);
    if (visit == visits_.end()) return;
    recomputes_ = true;
    const auto inside = static_cast<std::ptrdiff_t>(visit->first_inside);
    visits_.erase(visits_.begin() + inside, visits_.end());
  }
  /// A functional layer reads `param`: counts to the visit that returned it last, if any.
  void read(ParamId param) {
    const auto found = latest_.find(param);
    if (found == latest_.end() || !model_.params[raw(param)].trainable) return;
    const auto visit = std::find_if(visits_.rbegin(), visits_.rend(),
                                    [&](const Visit& one) { return one.serial == found->second; });
    if (visit != visits_.rend()) visit->read.insert(param);
  }
  /// Pre-backward of the latest visit of `module` without a backward so far: returns the fetches in addition
  /// to its own.
  [[nodiscard]] std::size_t further_fetches(ModuleId module) {
    if (!counts_) return 0;
    const auto visit = last_of(module);
    if (visit == visits_.end()) return 0;
    const std::size_t fetches = visit->read.size();
    visits_.erase(visit, visits_.end());  // later ones had no gradient
    return fetches;
  }

 private:
  struct Visit {
    std::uint64_t serial;
    ModuleId module;
    std::size_t first_inside;  ///< index in `visits_` of the first module that ran inside it
    std::set<ParamId> read;    ///< returned parameters that receive a gradient
  };

  [[nodiscard]] std::vector<Visit>::iterator last_of(ModuleId module) {
    const auto found = std::find_if(visits_.rbegin(), visits_.rend(),
                                    [module](const Visit& visit) { return visit.module == module; });
    return found == visits_.rend() ? visits_.end() : std::prev(found.base());
  }

  const ModelPlan& model_;
  bool counts_;
  std::uint64_t next_serial_ = 0;
  std::vector<Visit> visits_;                ///< forwards whose backward has not begun, in order of their end
  std::vector<std::size_t> begun_;           ///< for each running forward: size of `visits_` at its begin
  std::map<ParamId, std::uint64_t> latest_;  ///< the visit that returned it last
  bool recomputes_ = false;                  ///< a checkpointed module runs again
};

}  // namespace shardscope::plan
