#include "runtime/plan/scheduler_state.h"

#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/plan/offload.h"

namespace shardscope::plan {

FetchScheduler::State::State(const ModelPlan& model, SchedulerConfig settings)
    : config(std::move(settings)), swap(config.on_nvme, config.swap_buffers, config.compat) {
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
  exact = config.compat != Compat::shardscope;

  for (const ParamPlan& plan : model.params) {
    elems.push_back(plan.elems);
    param_names.push_back(plan.name);
  }
  for (const ModulePlan& module : model.modules) module_paths.push_back(module.path);
  const std::vector<bool> stays =
      persistent_params(elems, config.param_persistence_elems, config.model_persistence_elems);
  for (std::size_t i = 0; i < elems.size(); ++i) {
    Param param;
    param.elems = elems[i];
    param.persistent = stays[i];
    param.trainable = model.params[i].trainable;
    params.push_back(std::move(param));
  }
  for (const ModulePlan& module : model.modules) {
    std::vector<ParamId> own = module.params;
    std::sort(own.begin(), own.end());
    module_params.push_back(std::move(own));
  }
  own_params = module_params;
  subtree_params = module_params;
  std::vector<std::vector<ParamId>> below(model.modules.size());
  const auto join = [](std::vector<ParamId>& into, const std::vector<ParamId>& ids) {
    std::vector<ParamId> both;
    std::set_union(into.begin(), into.end(), ids.begin(), ids.end(), std::back_inserter(both));
    into = std::move(both);
  };
  for (std::size_t i = model.modules.size(); i-- > 1;) {
    const ModuleId parent = model.modules[i].parent;
    if (parent == kNone<ModuleId>) continue;
    join(subtree_params[raw(parent)], subtree_params[i]);
    join(below[raw(parent)], subtree_params[i]);
  }
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

// ---- Gathering ----------------------------------------------------------------------------------------

Gather FetchScheduler::State::issue(const std::vector<ParamId>& wanted) {
  Gather gather;
  for (const ParamId id : wanted) {
    if (at(id).status == ParamStatus::not_available) gather.params.push_back(id);
  }
  if (gather.params.empty()) return gather;
  std::sort(gather.params.begin(), gather.params.end());
  gather.id = GatherId{next_gather++};
  Pending pending;
  pending.params = gather.params;
  for (const ParamId id : gather.params) {
    Param& param = at(id);
    gather.elems += param.elems;
    resident += param.elems;
    if (counted(param)) available += param.elems;
    swap.gather(id);
    unregister(param);  // an earlier, finished gather must not complete this one
    param.status = ParamStatus::in_flight;
    param.registered = gather.id;
    param.registered_order = next_registration++;
    ++pending.registered;
  }
  gathers.emplace(gather.id, std::move(pending));
  return gather;
}

void FetchScheduler::State::give_back_persistent(const Gather& gather) {
  for (const ParamId id : gather.params) {
    if (at(id).persistent) swap.release(id);
  }
}

void FetchScheduler::State::complete(GatherId id, std::vector<ParamId>& completed) {
  Pending& pending = gathers.at(id);
  pending.complete = true;
  for (const ParamId param : pending.params) {
    at(param).status = ParamStatus::available;
    completed.push_back(param);
  }
}

void FetchScheduler::State::unregister(Param& param) {
  if (param.registered == kNone<GatherId>) return;
  const auto found = gathers.find(param.registered);
  param.registered = kNone<GatherId>;
  if (--found->second.registered == 0) gathers.erase(found);
}

/// Waits for a registered parameter. Returns false when it is not registered.
bool FetchScheduler::State::wait(ParamId id, std::vector<GatherId>& wait_for,
                                 std::vector<ParamId>& completed) {
  Param& param = at(id);
  if (param.registered == kNone<GatherId>) return false;
  const GatherId gather = param.registered;
  if (!gathers.at(gather).complete) {
    complete(gather, completed);
    wait_for.push_back(gather);
  }
  unregister(param);
  return true;
}

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
    wait(id, waited, completed);
    at(id).active.clear();
    if (persistent == Persistent::kept && at(id).persistent) continue;
    if (release_param(id)) released.push_back(id);
  }
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
  std::sort(registered.begin(), registered.end(),
            [this](ParamId a, ParamId b) { return at(a).registered_order < at(b).registered_order; });
  Drain drain;
  std::vector<ParamId> completed;
  for (const ParamId id : registered) {
    wait(id, drain.wait_for, completed);
    // Persistent parameters that a prefetch brought stay (DeepSpeed gives them up too).
    if (!exact && at(id).persistent) continue;
    if (release_param(id)) drain.released.push_back(id);
  }
  std::sort(drain.released.begin(), drain.released.end());
  for (const ParamId id : completed) {
    if (at(id).status == ParamStatus::available) drain.completed.push_back(id);
  }
  return drain;
}

// ---- The trace ----------------------------------------------------------------------------------------

Invalidation FetchScheduler::State::invalidate(InvalidationCause cause, ModuleId expected, ModuleId got) {
  Invalidation invalidation;
  invalidation.cause = cause;
  invalidation.trace_step = step;
  invalidation.recorded = static_cast<std::int64_t>(trace.modules().size());
  invalidation.expected = expected;
  invalidation.got = got;
  mode = TraceMode::invalid;
  trace.clear();
  queue.clear();
  for (Param& param : params) param.fetched_for = kNeverFetched;
  Drain gone = drain();
  invalidation.wait_for = std::move(gone.wait_for);
  invalidation.released = std::move(gone.released);
  invalidation.completed = std::move(gone.completed);
  return invalidation;
}

std::optional<Invalidation> FetchScheduler::State::check_trace(ModuleId module) {
  if (mode != TraceMode::complete) return std::nullopt;
  const auto& order = trace.modules();
  if (static_cast<std::int64_t>(order.size()) <= step) {
    return invalidate(InvalidationCause::trace_too_short, kNone<ModuleId>, module);
  }
  const ModuleId expected = order[static_cast<std::size_t>(step)];
  if (expected != module) return invalidate(InvalidationCause::module_differs, expected, module);
  const std::vector<ParamId> wanted = not_fetched_yet(module);
  const std::vector<ParamId> queued = next_in_queue(wanted.size());
  if (queued != wanted) {
    // DeepSpeed ends the run here; recording anew is as safe and keeps it alive.
    if (config.compat == Compat::deepspeed) tracing_error(module, wanted, queued);
    return invalidate(InvalidationCause::params_differ, expected, module);
  }
  return std::nullopt;
}

std::vector<ParamId> FetchScheduler::State::not_fetched_yet(ModuleId module) {
  std::vector<ParamId> missing;
  for (const ParamId id : module_params[raw(module)]) {
    if (at(id).fetched_for < step) missing.push_back(id);
  }
  return missing;
}

std::vector<ParamId> FetchScheduler::State::next_in_queue(std::size_t distinct) const {
  std::set<ParamId> seen;
  for (auto next = queue.begin(); next != queue.end() && seen.size() < distinct; ++next) {
    seen.insert(next->param);
  }
  return {seen.begin(), seen.end()};
}

/// DeepSpeed's error (C7) with names, and what to do.
void FetchScheduler::State::tracing_error(ModuleId module, const std::vector<ParamId>& wanted,
                                          const std::vector<ParamId>& queued) const {
  const auto list = [this](const std::vector<ParamId>& ids) {
    std::string text = "(";
    for (const ParamId id : ids) {
      text += (text.size() > 1 ? ", " : "") + param_names[raw(id)] + " (parameter " +
              std::to_string(raw(id)) + ")";
    }
    return text + ")";
  };
  const std::string& path = module_paths[raw(module)];
  throw std::runtime_error(
      "tracing error at step " + std::to_string(step) + ": module id: " + std::to_string(raw(module)) + " (" +
      (path.empty() ? "the root" : path) + "), expected the next " + std::to_string(wanted.size()) +
      " parameters in the parameter fetch queue to be " + list(wanted) + " but got " + list(queued) +
      ". The parameters that the module uses changed after its trace was recorded; register external "
      "parameters before the first step, or let compat's scheduler be shardscope, which records anew");
}

void FetchScheduler::State::pop_from_queue(std::size_t distinct) {
  std::set<ParamId> popped;
  while (!queue.empty() && popped.size() < distinct) {
    const TracedParam next = queue.front();
    queue.pop_front();
    at(next.param).fetched_for = next.step;
    popped.insert(next.param);
  }
}

// ---- Prefetch and release -----------------------------------------------------------------------------

Gather FetchScheduler::State::prefetch(PrefetchStop& stop) {
  if (config.prefetch_bucket_elems == 0) {
    stop = PrefetchStop::disabled;
    return {};
  }
  const std::int64_t live_room = config.max_live_elems - available;
  const std::int64_t budget = std::min(live_room, config.prefetch_bucket_elems);
  std::vector<ParamId> chosen;
  std::int64_t chosen_elems = 0;
  stop = PrefetchStop::end_of_trace;
  while (!queue.empty()) {
    if (chosen_elems >= budget) {
      stop = live_room <= config.prefetch_bucket_elems ? PrefetchStop::live_limit : PrefetchStop::bucket_full;
      break;
    }
    const TracedParam next = queue.front();
    Param& param = at(next.param);
    if (param.status == ParamStatus::not_available && !swap.ready(next.param)) {
      stop = PrefetchStop::offloaded;  // C8: what is on NVMe is read ahead first
      break;
    }
    const bool take = param.status == ParamStatus::not_available && !contains_id(chosen, next.param);
    // DeepSpeed may pass the live limit by one parameter; we leave that one for the next fetch.
    if (take && !exact && counted(param) && chosen_elems + param.elems > live_room) {
      stop = PrefetchStop::live_limit;
      break;
    }
    queue.pop_front();
    param.fetched_for = std::max(param.fetched_for, next.step);
    if (take) {
      chosen.push_back(next.param);
      chosen_elems += param.elems;
    }
  }
  return issue(chosen);
}

std::vector<ParamId> FetchScheduler::State::read_ahead() {
  if (config.prefetch_bucket_elems == 0) return {};
  std::int64_t in_flight = 0;
  for (const Param& param : params) in_flight += param.registered == kNone<GatherId> ? 0 : param.elems;
  return swap.read_ahead(queue, elems, in_flight,
                         [this](ParamId id) { return at(id).status != ParamStatus::not_available; });
}

/// Registered with `module`, which does not have it itself.
bool FetchScheduler::State::external_to(ParamId param, ModuleId module) const {
  return contains_id(module_params[raw(module)], param) && !contains_id(own_params[raw(module)], param);
}

/// C11: no module releases a parameter that one has returned. Ours keeps the limit.
bool FetchScheduler::State::stays_external(const Param& param) const {
  return param.returned && (exact || available <= config.max_live_elems);
}

/// Of a parameter that its module's release leaves where it is.
KeepReason FetchScheduler::State::why_kept(ParamId id) const {
  const Param& param = params[raw(id)];
  if (param.status == ParamStatus::not_available) return KeepReason::not_available;
  if (stays_external(param)) return KeepReason::external;
  if (!param.returned) return KeepReason::in_use;
  const bool held = std::any_of(param.active.begin(), param.active.end(),
                                [&](ModuleId module) { return external_to(id, module); });
  return held ? KeepReason::external : KeepReason::in_use;
}

/// As DeepSpeed measures where there are leaf modules: it looks at the modules that it walks over as at the
/// one it releases, with all below them if that is a leaf module, without (even where they are leaf modules
/// themselves) if it is not.
bool FetchScheduler::State::met_before_the_limit(ParamId param, ModuleId releasing) const {
  const auto& within = leaf[raw(releasing)] ? subtree_params : direct_params;
  const auto& order = trace.modules();
  std::int64_t traversed = 0;
  bool found = false;
  const auto walk = [&](ParamId seen) {
    found = found || seen == param;
    traversed += elems[raw(seen)];
  };
  for (auto at_step = static_cast<std::size_t>(step);
       !found && at_step < order.size() && traversed < config.max_reuse_distance_elems; ++at_step) {
    const std::size_t module = raw(order[at_step]);
    for (const ParamId id : within[module]) walk(id);
    for (const ParamId id : module_params[module]) {
      if (!contains_id(own_params[module], id)) walk(id);  // external: in either case
    }
  }
  return found;
}

bool FetchScheduler::State::reused_soon(ParamId param, ModuleId releasing) const {
  // By default what DeepSpeed keeps is kept as well, which no limit forbids: max_live_elems is looked at
  // before.
  if (any_leaf && met_before_the_limit(param, releasing)) return true;
  if (any_leaf && exact) return false;
  const std::int64_t use = trace.next_use(param, step);
  return use >= 0 && trace.elems_between(step, use) < config.max_reuse_distance_elems;
}

FetchScheduler::State::Decision FetchScheduler::State::decide_release(ModuleId module) {
  Decision decision;
  for (const ParamId id : module_params[raw(module)]) {
    const Param& param = at(id);
    if (param.persistent && (mode == TraceMode::complete || !exact)) {
      decision.kept.push_back({id, KeepReason::persistent});
    } else if (mode != TraceMode::complete) {
      decision.release.push_back(id);
    } else if (param.fetched_for > step) {
      decision.kept.push_back({id, KeepReason::already_fetched});
    } else if ((exact || available <= config.max_live_elems) && reused_soon(id, module)) {
      decision.kept.push_back({id, KeepReason::reused_soon});
    } else {
      decision.release.push_back(id);
    }
  }
  return decision;
}

}  // namespace shardscope::plan
