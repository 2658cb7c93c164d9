#include "runtime/plan/scheduler.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

FetchScheduler::FetchScheduler(const ModelPlan& model, std::uint32_t world, SchedulerConfig config)
    : state_(std::make_unique<State>(model, std::move(config))) {
  if (world == 0) throw std::invalid_argument("scheduler: world is 0; it must be at least 1");
}
FetchScheduler::~FetchScheduler() = default;

TraceMode FetchScheduler::begin_iteration() {
  State& s = *state_;
  s.drained = s.drain();
  switch (s.mode) {
    case TraceMode::record:
      s.trace.freeze(s.module_params, s.elems);
      s.mode = TraceMode::complete;
      break;
    case TraceMode::invalid:
      s.trace.clear();
      s.mode = TraceMode::record;
      break;
    case TraceMode::complete:
      break;
  }
  s.queue.assign(s.trace.params().begin(), s.trace.params().end());
  for (State::Param& param : s.params) param.fetched_for = kNeverFetched;
  s.step = 0;
  if (s.exact) s.available = 0;
  return s.mode;
}

const Drain& FetchScheduler::drained() const noexcept { return state_->drained; }

FetchPlan FetchScheduler::fetch(ModuleId module, Direction direction) {
  return state_->fetch(module,
                       direction == Direction::backward ? State::Visit::backward : State::Visit::forward);
}
FetchPlan FetchScheduler::fetch_recomputed(ModuleId module) {
  return state_->fetch(module, State::Visit::recompute);
}
ReleasePlan FetchScheduler::release(ModuleId module, Direction direction) {
  return state_->release(module,
                         direction == Direction::backward ? State::Visit::backward : State::Visit::forward);
}
ReleasePlan FetchScheduler::release_recomputed(ModuleId module) {
  return state_->release(module, State::Visit::recompute);
}

FetchPlan FetchScheduler::State::fetch(ModuleId module, Visit visit) {
  FetchPlan plan;
  plan.invalidated = check_trace(module);
  if (mode == TraceMode::record) trace.record(module);
  // To DeepSpeed a recomputation is a forward. By default its fetch counts as that of the backward to come.
  const bool begins_backward = visit == Visit::backward || (visit == Visit::recompute && !exact);
  if (begins_backward && !contains_id(active_backward, module)) active_backward.push_back(module);

  const std::vector<ParamId>& wanted = module_params.at(raw(module));
  plan.gather = issue(wanted);
  give_back_persistent(plan.gather);
  for (const ParamId id : wanted) {
    Param& param = at(id);
    if (!contains_id(param.active, module)) param.active.push_back(module);
    if (visit == Visit::recompute && exact && !param.trainable && !active_backward.empty()) {
      const ModuleId owner = active_backward.back();
      if (!contains_id(recomputed[owner], id)) recomputed[owner].push_back(id);
      if (!contains_id(param.active, owner)) param.active.push_back(owner);
    }
    if (wait(id, plan.wait_for, plan.completed)) plan.wait.push_back(id);
  }
  std::sort(plan.completed.begin(), plan.completed.end());

  plan.stop = PrefetchStop::no_trace;
  if (mode == TraceMode::complete) {
    pop_from_queue(not_fetched_yet(module).size());
    plan.prefetch = prefetch(plan.stop);
    give_back_persistent(plan.prefetch);
    plan.read_ahead = read_ahead();
  }
  plan.trace_step = step++;
  plan.available_elems = available;
  return plan;
}

std::vector<ParamId> FetchScheduler::State::take_recomputed(ModuleId module) {
  const auto found = recomputed.find(module);
  if (found == recomputed.end()) return {};
  std::vector<ParamId> taken = std::move(found->second);
  recomputed.erase(found);
  for (const ParamId id : taken) erase_id(at(id).active, module);
  return taken;
}

ReleasePlan FetchScheduler::State::release(ModuleId module, Visit visit) {
  Decision decision;
  if (exact && mode == TraceMode::complete) {
    // DeepSpeed remembers the decision for this module and step, across invalidations too.
    const std::uint64_t key =
        static_cast<std::uint64_t>(raw(module)) << 32U | static_cast<std::uint64_t>(step);
    auto found = memo.find(key);
    if (found == memo.end()) found = memo.emplace(key, decide_release(module)).first;
    decision = found->second;
  } else {
    decision = decide_release(module);
  }
  if (visit != Visit::forward) erase_id(active_backward, module);
  if (visit == Visit::backward) {
    for (const ParamId id : take_recomputed(module)) {
      if (at(id).persistent || contains_id(decision.release, id)) continue;
      decision.release.push_back(id);
      decision.kept.erase(std::remove_if(decision.kept.begin(), decision.kept.end(),
                                         [id](const Kept& kept) { return kept.param == id; }),
                          decision.kept.end());
    }
  }

  ReleasePlan plan;
  for (const ParamId id : module_params[raw(module)]) erase_id(at(id).active, module);
  plan.kept = std::move(decision.kept);
  for (const ParamId id : decision.release) {
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

FetchPlan FetchScheduler::fetch_external(ParamId param, ModuleId module) {
  State& s = *state_;
  FetchPlan plan;
  std::vector<ParamId>& owned = s.module_params.at(raw(module));
  State::Param& p = s.at(param);
  const bool missing = p.status == ParamStatus::not_available;
  // DeepSpeed learns of an external parameter only when it finds it missing. While a trace is followed, a new
  // parameter would break it, so an available one is not registered then.
  if (!contains_id(owned, param) && (missing || (!s.exact && s.mode != TraceMode::complete))) {
    owned.insert(std::lower_bound(owned.begin(), owned.end(), param), param);
  }
  if (!s.exact && contains_id(owned, param) && !contains_id(p.active, module)) p.active.push_back(module);
  if (missing) {
    const std::int64_t before = s.available;
    plan.gather = s.issue({param});
    if (s.exact) s.available = before;  // DeepSpeed gathers these outside its coordinator
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
  if (around.empty() && !s.exact) return plan;
  // By default one that has it as its own holds it as well; DeepSpeed asks for external parameters only.
  const auto holds = [&](ModuleId running) {
    return s.exact ? s.external_to(param, running) : contains_id(s.module_params.at(raw(running)), param);
  };
  const auto holder = std::find_if(around.rbegin(), around.rend(), holds);
  if (holder != around.rend()) {
    plan.holder = *holder;
    return plan;
  }
  plan.holder = around.empty() ? root : around.back();
  if (s.exact && holds(root)) {
    plan.holder = root;
    return plan;
  }
  plan.moved = true;
  State::Param& p = s.at(param);
  p.returned = true;
  std::vector<ParamId>& known = s.module_params.at(raw(plan.holder));
  if (!contains_id(known, param)) known.insert(std::lower_bound(known.begin(), known.end(), param), param);
  if (s.external_to(param, module)) {
    erase_id(s.module_params[raw(module)], param);
    if (!s.exact) erase_id(p.active, module);  // DeepSpeed forgets to
  }
  if (!s.exact && !contains_id(p.active, plan.holder)) p.active.push_back(plan.holder);
  if (p.status == ParamStatus::not_available) {
    const std::int64_t before = s.available;
    plan.fetch.gather = s.issue({param});
    if (s.exact) s.available = before;  // gathered outside DeepSpeed's coordinator
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
  state_->memo.clear();
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
  s.memo.clear();
  if (s.exact) return;  // DeepSpeed never takes back that it was returned
  for (std::size_t i = 0; i < s.module_params.size(); ++i) {
    if (s.external_to(param, ModuleId{static_cast<std::uint32_t>(i)})) return;
  }
  s.at(param).returned = false;
}

std::vector<ParamId> FetchScheduler::release_leftovers() {
  State& s = *state_;
  std::vector<ParamId> released;
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

std::vector<ParamId> FetchScheduler::begin_update() {
  return state_->release_every(state_->exact ? Persistent::released : Persistent::kept);
}

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

Gather FetchScheduler::gather_persistent() {
  State& s = *state_;
  std::vector<ParamId> wanted;
  for (std::uint32_t i = 0; i < s.params.size(); ++i) {
    if (s.params[i].persistent) wanted.push_back(ParamId{i});
  }
  const std::int64_t before = s.available;
  Gather gather = s.issue(wanted);
  s.available = before;
  std::vector<GatherId> waited;
  std::vector<ParamId> completed;
  for (const ParamId id : gather.params) s.wait(id, waited, completed);
  return gather;
}

std::vector<GatherId> FetchScheduler::in_flight_gathers() const {
  std::vector<GatherId> ids;
  for (const auto& [id, pending] : state_->gathers) {
    if (!pending.complete) ids.push_back(id);
  }
  return ids;
}

TraceMode FetchScheduler::mode() const noexcept { return state_->mode; }
ParamStatus FetchScheduler::status(ParamId param) const noexcept { return state_->params[raw(param)].status; }
bool FetchScheduler::persistent(ParamId param) const noexcept {
  return state_->params[raw(param)].persistent;
}
std::int64_t FetchScheduler::available_elems() const noexcept { return state_->available; }
std::int64_t FetchScheduler::resident_elems() const noexcept { return state_->resident; }
const std::vector<ParamId>& FetchScheduler::params_of(ModuleId module) const noexcept {
  return state_->module_params[raw(module)];
}
std::int64_t FetchScheduler::trace_step() const noexcept { return state_->step; }

const std::vector<ModuleId>& FetchScheduler::trace() const noexcept {
  static const std::vector<ModuleId> kEmpty;
  return state_->mode == TraceMode::complete ? state_->trace.modules() : kEmpty;
}

}  // namespace shardscope::plan
