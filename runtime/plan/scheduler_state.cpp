// Tables derived from the model once: sizes, persistence, and which parameters a module fetches.
#include "runtime/plan/scheduler_state.h"

#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/plan/offload.h"

namespace shardscope::plan {

// All tables are by raw id and are made once per run, from the model and the settings alone, so that they are
// equal on all ranks.
FetchScheduler::State::State(const ModelPlan& model, SchedulerConfig settings)
    : config(std::move(settings)),
      compat(config.compat),
      swap(config.on_nvme, config.swap_buffers, config.compat) {
  // 0 is valid for all of them: no prefetch, nothing persistent, and so on.
  const auto not_negative = [](const char* key, std::int64_t value) {
    if (value < 0) {
      throw std::invalid_argument(std::string(key) + " is " + std::to_string(value) +
                                  "; it must be at least 0");
    }
  };
  not_negative("stage3_prefetch_bucket_size", config.prefetch_bucket_elems);
  not_negative("stage3_max_live_parameters", config.max_live_elems);
  not_negative("stage3_max_reuse_distance", config.max_reuse_distance_elems);
  not_negative("stage3_param_persistence_threshold", config.param_persistence_elems);
  not_negative("stage3_model_persistence_threshold", config.model_persistence_elems);

  for (const ParamPlan& plan : model.params) {
    elems.push_back(plan.elems);
    param_names.push_back(plan.name);
  }
  for (const ModulePlan& module : model.modules) module_paths.push_back(module.path);
  // By size only, so all ranks keep the same ones.
  const std::vector<bool> stays =
      persistent_params(elems, config.param_persistence_elems, config.model_persistence_elems);
  for (std::size_t i = 0; i < elems.size(); ++i) {
    Param param;
    param.elems = elems[i];
    param.persistent = stays[i];
    param.trainable = model.params[i].trainable;
    params.push_back(std::move(param));
  }
  // Always ascending: set operations take linear time and a gather lists ids in order.
  for (const ModulePlan& module : model.modules) {
    std::vector<ParamId> own = module.params;
    std::sort(own.begin(), own.end());
    module_params.push_back(std::move(own));
  }
  // From the model alone: module_params grows by external parameters while the model runs, these do not.
  own_params = module_params;
  subtree_params = module_params;
  // By module: parameters of the modules below it.
  std::vector<std::vector<ParamId>> below(model.modules.size());
  // Union of two ascending lists: a parameter that two modules share (tied weights) is in it once.
  const auto join = [](std::vector<ParamId>& into, const std::vector<ParamId>& ids) {
    std::vector<ParamId> both;
    std::set_union(into.begin(), into.end(), ids.begin(), ids.end(), std::back_inserter(both));
    into = std::move(both);
  };
  // Parents have lower ids than their children, so from the back each subtree is complete when it joins its
  // parent.
  // Down to 1: module 0 is the root, which joins nothing.
  for (std::size_t i = model.modules.size(); i-- > 1;) {
    const ModuleId parent = model.modules[i].parent;
    if (parent == kNone<ModuleId>) continue;
    join(subtree_params[raw(parent)], subtree_params[i]);
    join(below[raw(parent)], subtree_params[i]);
  }
  // A leaf module (C13) lists all parameters of its subtree; met_before_the_limit() needs its direct ones.
  direct_params = own_params;
  for (std::size_t i = 0; i < model.modules.size(); ++i) {
    leaf.push_back(model.modules[i].leaf);
    any_leaf |= leaf.back();
    if (!leaf.back()) continue;
    direct_params[i].clear();
    std::set_difference(own_params[i].begin(), own_params[i].end(), below[i].begin(), below[i].end(),
                        std::back_inserter(direct_params[i]));
  }
}

}  // namespace shardscope::plan
