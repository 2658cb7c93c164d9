// Which parameters of a module that has run are released, which are kept, and why; and the release of
// everything: between iterations, when a trace is invalidated, before the optimizer step.
#include <algorithm>
#include <utility>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

/// Also removes `module` from the `active` list of each, where fetch() put it.
std::vector<ParamId> FetchScheduler::State::take_recomputed(ModuleId module) {
  const auto found = recomputed.find(module);
  if (found == recomputed.end()) return {};
  std::vector<ParamId> taken = std::move(found->second);
  recomputed.erase(found);
  for (const ParamId id : taken) erase_id(at(id).active, module);
  return taken;
}

/// Decides for all parameters before it releases any, so that each decision sees the same number of live
/// elements.
ReleasePlan FetchScheduler::State::release(ModuleId module, Visit visit) {
  Decision decision;
  if (compat.remembers_releases() && coordinator->mode == TraceMode::complete) {
    // DeepSpeed remembers the decision for this module and step, across invalidations too.
    const std::uint64_t key =
        static_cast<std::uint64_t>(raw(module)) << 32U | static_cast<std::uint64_t>(step);
    auto found = coordinator->memo.find(key);
    if (found == coordinator->memo.end())
      found = coordinator->memo.emplace(key, decide_release(module)).first;
    decision = found->second;
  } else {
    decision = decide_release(module);
  }
  if (visit != Visit::forward) erase_id(active_backward, module);
  if (visit == Visit::backward) {
    for (const ParamId id : take_recomputed(module)) {
      // DeepSpeed frees recomputed parameters whatever the rules below decided, even those they kept.
      if (at(id).persistent || contains_id(decision.release, id)) continue;
      decision.release.push_back(id);
      decision.kept.erase(std::remove_if(decision.kept.begin(), decision.kept.end(),
                                         [id](const Kept& kept) { return kept.param == id; }),
                          decision.kept.end());
    }
  }

  ReleasePlan plan;
  // `module` uses nothing from here on; what another module still holds is not released below.
  for (const ParamId id : module_params[raw(module)]) erase_id(at(id).active, module);
  plan.kept = std::move(decision.kept);
  for (const ParamId id : decision.release) {
    // The decision considers neither other modules that hold the parameter nor returned ones: these two
    // checks do.
    if (!stays_external(at(id)) && release_param(id)) {
      plan.released.push_back(id);
    } else {
      plan.kept.push_back({id, why_kept(id)});
    }
  }
  std::sort(plan.released.begin(), plan.released.end());
  std::sort(plan.kept.begin(), plan.kept.end(),
            [](const Kept& a, const Kept& b) { return a.param < b.param; });
  plan.available_elems = available;
  return plan;
}

std::vector<ParamId> FetchScheduler::release_leftovers() {
  State& s = *state_;
  std::vector<ParamId> released;
  // From the module that entered last: inner modules are released before the enclosing ones.
  while (!s.active_backward.empty()) {
    const ModuleId module = s.active_backward.back();
    s.active_backward.pop_back();
    std::vector<ParamId> params = s.take_recomputed(module);
    params.insert(params.end(), s.module_params[raw(module)].begin(), s.module_params[raw(module)].end());
    for (const ParamId id : params) {
      erase_id(s.at(id).active, module);
      if (s.at(id).persistent || s.stays_external(s.at(id))) continue;
      if (s.release_param(id)) released.push_back(id);
    }
  }
  std::sort(released.begin(), released.end());
  return released;
}

std::vector<ParamId> FetchScheduler::release_all() { return state_->release_every(Persistent::released); }

/// Gathered parameters would be stale after the update of the shards, so they are released before.
std::vector<ParamId> FetchScheduler::begin_update() {
  return state_->release_every(state_->compat.partitions_persistent_at_update() ? Persistent::released
                                                                                : Persistent::kept);
}

/// Only parameters that begin_update() kept can still be available.
std::vector<ParamId> FetchScheduler::end_update(WeightChange change) {
  State& s = *state_;
  std::vector<ParamId> released;
  for (std::uint32_t i = 0; i < s.params.size(); ++i) {
    const ParamId id{i};
    const bool changed =
        change == WeightChange::all || (change == WeightChange::trainable && s.at(id).trainable);
    if (changed && s.release_param(id)) released.push_back(id);
  }
  return released;
}

/// False, and nothing changes, while a module uses the parameter or its gather has not been waited for.
bool FetchScheduler::State::release_param(ParamId id) {
  Param& param = at(id);
  if (param.status != ParamStatus::available || !param.active.empty()) return false;
  param.status = ParamStatus::not_available;
  swap.release(id);
  resident -= param.elems;
  if (counted(param)) available -= param.elems;
  return true;
}

std::vector<ParamId> FetchScheduler::State::release_every(Persistent persistent) {
  std::vector<ParamId> released;
  std::vector<GatherId> waited;
  std::vector<ParamId> completed;
  for (std::uint32_t i = 0; i < params.size(); ++i) {
    const ParamId id{i};
    wait(id, waited, completed);  // a parameter must not be freed while its gather is in flight
    at(id).active.clear();
    if (persistent == Persistent::kept && at(id).persistent) continue;
    if (release_param(id)) released.push_back(id);
  }
  // Shards read ahead into host buffers hold values from before the change.
  swap.forget();
  active_backward.clear();
  recomputed.clear();
  return released;
}

/// Waits for everything registered and releases what no module uses.
Drain FetchScheduler::State::drain() {
  std::vector<ParamId> registered;
  for (std::uint32_t i = 0; i < params.size(); ++i) {
    if (params[i].registered != kNone<GatherId>) registered.push_back(ParamId{i});
  }
  // In order of registration, as on the gather stream: each wait is then for the next gather to finish.
  std::sort(registered.begin(), registered.end(),
            [this](ParamId a, ParamId b) { return at(a).registered_order < at(b).registered_order; });
  Drain drain;
  std::vector<ParamId> completed;
  for (const ParamId id : registered) {
    wait(id, drain.wait_for, completed);
    // Prefetched persistent parameters stay (DeepSpeed releases them too).
    if (!compat.drains_persistent() && at(id).persistent) continue;
    if (release_param(id)) drain.released.push_back(id);
  }
  std::sort(drain.released.begin(), drain.released.end());
  // Parameters of completed gathers that stay: held by a module, or persistent.
  for (const ParamId id : completed) {
    if (at(id).status == ParamStatus::available) drain.completed.push_back(id);
  }
  return drain;
}

/// C11: no module releases a parameter that was returned. Ours does so above the live limit.
bool FetchScheduler::State::stays_external(const Param& param) const {
  return param.returned && (compat.keeps_beyond_live_limit() || available <= config.max_live_elems);
}

/// Why the release of its module keeps a parameter.
KeepReason FetchScheduler::State::why_kept(ParamId id) const {
  const Param& param = params[raw(id)];
  if (param.status == ParamStatus::not_available) return KeepReason::not_available;
  if (stays_external(param)) return KeepReason::external;
  if (!param.returned) return KeepReason::in_use;
  const bool held = std::any_of(param.active.begin(), param.active.end(),
                                [&](ModuleId module) { return external_to(id, module); });
  return held ? KeepReason::external : KeepReason::in_use;
}

/// DeepSpeed's reuse distance with leaf modules: if the released module is a leaf module, the walk counts all
/// parameters below each module it visits; if not, only direct parameters, even of visited leaf modules.
bool FetchScheduler::State::met_before_the_limit(ParamId param, ModuleId releasing) const {
  const auto& within = leaf[raw(releasing)] ? subtree_params : direct_params;
  const auto& order = coordinator->trace.modules();
  std::int64_t traversed = 0;
  bool found = false;
  const auto walk = [&](ParamId seen) {
    found = found || seen == param;
    traversed += elems[raw(seen)];
  };
  // Begins at the next visit: fetch() has counted those before.
  for (auto at_step = static_cast<std::size_t>(step);
       !found && at_step < order.size() && traversed < config.max_reuse_distance_elems; ++at_step) {
    const std::size_t module = raw(order[at_step]);
    for (const ParamId id : within[module]) walk(id);
    for (const ParamId id : module_params[module]) {
      if (!contains_id(own_params[module], id)) walk(id);  // external parameters: in either case
    }
  }
  return found;
}

bool FetchScheduler::State::reused_soon(ParamId param, ModuleId releasing) const {
  // By default parameters that DeepSpeed keeps are kept as well: max_live_elems was checked before.
  if (any_leaf && met_before_the_limit(param, releasing)) return true;
  if (any_leaf && compat.only_walks_for_reuse()) return false;
  // Distance in elements of parameters between here and its next use; no further use is below 0.
  const std::int64_t use = coordinator->trace.next_use(param, step);
  return use >= 0 && coordinator->trace.elems_between(step, use) < config.max_reuse_distance_elems;
}

/// C11, one rule after the other; the first that holds decides:
///   1. persistent: kept
///   2. no trace is followed: released, since nothing is known of later uses
///   3. a later step's fetch or prefetch covers it: kept, or that prefetch would be lost
///   4. used again within max_reuse_distance, and live parameters within their limit: kept
///   5. released
FetchScheduler::State::Decision FetchScheduler::State::decide_release(ModuleId module) {
  Decision decision;
  for (const ParamId id : module_params[raw(module)]) {
    const Param& param = at(id);
    if (param.persistent && (coordinator->mode == TraceMode::complete ||
                             !compat.keeps_persistent_only_when_tracing_is_complete())) {
      decision.kept.push_back({id, KeepReason::persistent});
    } else if (coordinator->mode != TraceMode::complete) {
      decision.release.push_back(id);
    } else if (param.fetched_for > step) {
      decision.kept.push_back({id, KeepReason::already_fetched});
    } else if ((compat.keeps_beyond_live_limit() || available <= config.max_live_elems) &&
               reused_soon(id, module)) {
      decision.kept.push_back({id, KeepReason::reused_soon});
    } else {
      decision.release.push_back(id);
    }
  }
  return decision;
}

}  // namespace shardscope::plan
