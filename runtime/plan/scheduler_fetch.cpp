// Gathers and waits for missing parameters: before a module runs, where it reads a parameter of another
// module, and where it returns one. Each fetch issues one coalesced gather.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

/// Pre-forward or pre-backward of a module. The order of the parts is the order in which the caller queues
/// them: invalidation, gather, waits, prefetch, read-ahead (FetchPlan).
FetchPlan FetchScheduler::State::fetch(ModuleId module, Visit visit) {
  if (model_mode == ModelMode::evaluation && visit != Visit::forward) {
    throw std::logic_error(
        "backward of module " + std::to_string(raw(module)) + " (" +
        (module_paths.at(raw(module)).empty() ? "the root" : module_paths[raw(module)]) +
        "): the model is in evaluation mode, which has no backward; run the forward in training mode");
  }
  FetchPlan plan;
  // First, since an invalidation drains gathers and so changes which parameters are missing.
  plan.invalidated = check_trace(module);
  // After check_trace(), which may have made the mode invalid: an iteration that broke its trace is not
  // recorded.
  if (coordinator->mode == TraceMode::record) coordinator->trace.record(module);
  // For DeepSpeed a recomputation is a forward. By default its fetch counts as that of the backward that
  // follows.
  const bool begins_backward =
      visit == Visit::backward || (visit == Visit::recompute && !compat.recomputes_as_forward());
  // Once per module; removed by its release, or by release_leftovers() if it has no post-backward.
  if (begins_backward && !contains_id(active_backward, module)) active_backward.push_back(module);

  // One coalesced gather for all that is missing; parameters in flight already are only waited for.
  const std::vector<ParamId>& wanted = module_params.at(raw(module));
  plan.gather = issue(wanted);
  give_back_persistent(plan.gather);
  for (const ParamId id : wanted) {
    Param& param = at(id);
    // Before the waits and before any release: `active` keeps another module's release from freeing it.
    if (!contains_id(param.active, module)) param.active.push_back(module);
    if (visit == Visit::recompute && compat.gives_recomputed_frozen_to_backward() && !param.trainable &&
        !active_backward.empty()) {
      // The innermost module in backward, as in DeepSpeed: its release frees the parameter too.
      const ModuleId owner = active_backward.back();
      if (!contains_id(recomputed[owner], id)) recomputed[owner].push_back(id);
      if (!contains_id(param.active, owner)) param.active.push_back(owner);
    }
    if (wait(id, plan.wait_for, plan.completed)) plan.wait.push_back(id);
  }
  // A wait completes a whole gather, which may include parameters of other modules.
  std::sort(plan.completed.begin(), plan.completed.end());

  plan.stop = PrefetchStop::no_trace;
  // After the waits: prefetched parameters are queued behind what this module needs now (C8).
  if (coordinator->mode == TraceMode::complete) {
    // Parameters that this fetch covers leave the queue first: the prefetch takes those after them.
    pop_from_queue(not_fetched_yet(module).size());
    plan.prefetch = prefetch(plan.stop);
    give_back_persistent(plan.prefetch);
    // Without overlap_comm nothing is in flight beside computation: the stream waits for the prefetch here.
    if (plan.prefetch.id != kNone<GatherId> && wait_of(config.overlap) == WaitFor::at_once) {
      plan.wait_at_once.push_back(plan.prefetch.id);
    }
    plan.read_ahead = read_ahead();
  }
  // One step per visit: forward, backward and recomputation alike.
  plan.trace_step = step++;
  plan.available_elems = available;
  return plan;
}

/// Attribute access inside the forward of `module`: no step of the trace and no prefetch, only a gather if
/// missing.
FetchPlan FetchScheduler::fetch_external(ParamId param, ModuleId module) {
  State& s = *state_;
  FetchPlan plan;
  std::vector<ParamId>& owned = s.module_params.at(raw(module));
  State::Param& p = s.at(param);
  const bool missing = p.status == ParamStatus::not_available;
  // DeepSpeed registers an external parameter only when it is missing. While a trace is followed, a new
  // parameter would invalidate it, so an available one is not registered then.
  if (!contains_id(owned, param) &&
      (missing || (!s.compat.registers_missing_only() && s.coordinator->mode != TraceMode::complete))) {
    owned.insert(std::lower_bound(owned.begin(), owned.end(), param), param);
  }
  // Kept until the release of `module`, as its own parameters are.
  if (!s.compat.external_users_do_not_hold() && contains_id(owned, param) && !contains_id(p.active, module))
    p.active.push_back(module);
  if (missing) {
    const std::int64_t before = s.available;
    plan.gather = s.issue({param});
    if (s.compat.leaves_external_gathers_uncounted()) s.available = before;
  }
  if (s.wait(param, plan.wait_for, plan.completed)) plan.wait.push_back(param);
  plan.stop = PrefetchStop::no_trace;
  plan.trace_step = s.step;
  plan.available_elems = s.available;
  return plan;
}

ReturnPlan FetchScheduler::return_param(ParamId param, ModuleId module, std::span<const ModuleId> around) {
  State& s = *state_;
  ReturnPlan plan;
  plan.fetch.stop = PrefetchStop::returned;
  plan.fetch.trace_step = s.step;
  plan.fetch.available_elems = s.available;
  const ModuleId root{0};  // DeepSpeed's stack begins with it and never loses it
  if (around.empty() && !s.compat.root_always_runs()) return plan;
  // By default a module that owns it holds it as well; DeepSpeed considers external parameters only.
  const auto holds = [&](ModuleId running) {
    return s.compat.only_external_holds() ? s.external_to(param, running)
                                          : contains_id(s.module_params.at(raw(running)), param);
  };
  // From the innermost module outwards: the first that has the parameter keeps it to its own release.
  const auto holder = std::find_if(around.rbegin(), around.rend(), holds);
  if (holder != around.rend()) {
    plan.holder = *holder;
    return plan;
  }
  // None has it: the innermost running module, or the root, becomes its holder.
  plan.holder = around.empty() ? root : around.back();
  if (s.compat.root_always_runs() && holds(root)) {
    plan.holder = root;
    return plan;
  }
  plan.moved = true;
  State::Param& p = s.at(param);
  // From now on releases check stays_external().
  p.returned = true;
  std::vector<ParamId>& known = s.module_params.at(raw(plan.holder));
  if (!contains_id(known, param)) known.insert(std::lower_bound(known.begin(), known.end(), param), param);
  // `module` is about to be released and must not free what its caller now uses.
  if (s.external_to(param, module)) {
    erase_id(s.module_params[raw(module)], param);
    if (!s.compat.external_users_do_not_hold()) erase_id(p.active, module);
  }
  if (!s.compat.external_users_do_not_hold() && !contains_id(p.active, plan.holder))
    p.active.push_back(plan.holder);
  if (p.status == ParamStatus::not_available) {
    const std::int64_t before = s.available;
    plan.fetch.gather = s.issue({param});
    if (s.compat.leaves_external_gathers_uncounted()) s.available = before;
  }
  if (s.wait(param, plan.fetch.wait_for, plan.fetch.completed)) plan.fetch.wait.push_back(param);
  plan.fetch.available_elems = s.available;
  return plan;
}

void FetchScheduler::register_external(ParamId param, ModuleId module) {
  std::vector<ParamId>& known = state_->module_params.at(raw(module));
  (void)state_->params.at(raw(param));
  if (contains_id(known, param)) return;
  known.insert(std::lower_bound(known.begin(), known.end(), param), param);
  state_->forget_decisions();  // they were made for the old list of parameters
}

void FetchScheduler::unregister_external(ParamId param, ModuleId module) {
  State& s = *state_;
  std::vector<ParamId>& known = s.module_params.at(raw(module));
  if (!contains_id(known, param) || contains_id(s.own_params[raw(module)], param)) {
    throw std::invalid_argument("parameter " + std::to_string(raw(param)) +
                                " is no registered external parameter of module " +
                                std::to_string(raw(module)));
  }
  if (contains_id(s.at(param).active, module)) {
    throw std::logic_error("parameter " + std::to_string(raw(param)) + " is in use by module " +
                           std::to_string(raw(module)) + "; unregister it between two steps");
  }
  erase_id(known, param);
  s.forget_decisions();
  if (s.compat.returned_for_good()) return;
  // While another module has it as external it stays returned.
  for (std::size_t i = 0; i < s.module_params.size(); ++i) {
    if (s.external_to(param, ModuleId{static_cast<std::uint32_t>(i)})) return;
  }
  s.at(param).returned = false;
}

Gather FetchScheduler::gather_persistent() {
  State& s = *state_;
  std::vector<ParamId> wanted;
  for (std::uint32_t i = 0; i < s.params.size(); ++i) {
    if (s.params[i].persistent) wanted.push_back(ParamId{i});
  }
  // Not counted (C9), and complete at once: the caller makes the compute stream wait before any module runs.
  const std::int64_t before = s.available;
  Gather gather = s.issue(wanted);
  s.available = before;
  std::vector<GatherId> waited;
  std::vector<ParamId> completed;
  for (const ParamId id : gather.params) s.wait(id, waited, completed);
  return gather;
}

/// Invariants afterwards: `resident` counts every parameter in flight or available, `available` those that
/// the limit bounds (counted()), and each parameter is registered with one gather at most.
Gather FetchScheduler::State::issue(const std::vector<ParamId>& wanted) {
  Gather gather;
  for (const ParamId id : wanted) {
    // Parameters in flight are skipped: this fetch waits for their gather.
    if (at(id).status == ParamStatus::not_available) gather.params.push_back(id);
  }
  if (gather.params.empty()) return gather;
  std::sort(gather.params.begin(), gather.params.end());
  // Ids are the same on every rank, because the calls are: ranks agree on gathers without communication.
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
  // Stays until the last of its parameters is unregistered.
  gathers.emplace(gather.id, std::move(pending));
  return gather;
}

void FetchScheduler::State::give_back_persistent(const Gather& gather) {
  for (const ParamId id : gather.params) {
    if (at(id).persistent) swap.release(id);
  }
}

/// [Note: two kinds of in-flight]: the status of all parameters changes, their registration stays.
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
  if (--found->second.registered == 0) gathers.erase(found);  // no fetch can refer to it any more
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

/// Whether `param` is registered with `module` without being its own.
bool FetchScheduler::State::external_to(ParamId param, ModuleId module) const {
  return contains_id(module_params[raw(module)], param) && !contains_id(own_params[raw(module)], param);
}

}  // namespace shardscope::plan
