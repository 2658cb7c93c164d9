// The public interface of State, and the modes of the trace between iterations:
//   invalid -> record -> complete, and back to invalid where an iteration differs from the trace
//   (scheduler_trace.cpp); for training and evaluation each on its own.
#include "runtime/plan/scheduler.h"

#include <stdexcept>
#include <utility>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

FetchScheduler::FetchScheduler(const ModelPlan& model, std::uint32_t world, SchedulerConfig config)
    // Every rank builds the same state from the same model and configuration; later decisions depend on calls
    // only.
    : state_(std::make_unique<State>(model, std::move(config))) {
  if (world == 0) throw std::invalid_argument("scheduler: world is 0; it must be at least 1");
}

FetchScheduler::~FetchScheduler() = default;

TraceMode FetchScheduler::begin_iteration(ModelMode mode) {
  State& s = *state_;
  // Before the mode changes: parameters still registered were prefetched in the iteration that ends here.
  s.drained = s.drain();
  s.model_mode = mode;
  s.coordinator = &s.coordinators[s.coordinator_of(mode)];
  Trace& trace = s.coordinator->trace;
  switch (s.coordinator->mode) {
    case TraceMode::record:
      // An iteration was recorded to its end: its order is followed from now on, with the modules' current
      // parameters.
      trace.freeze(s.module_params, s.elems);
      s.coordinator->mode = TraceMode::complete;
      break;
    case TraceMode::invalid:  // also the first iteration of all
      trace.clear();
      s.coordinator->mode = TraceMode::record;
      break;
    // No fetch broke the trace: it is followed again from its beginning.
    case TraceMode::complete:
      break;
  }
  // Empty while recording: then nothing is prefetched.
  s.queue.assign(trace.params().begin(), trace.params().end());
  // Steps restart at 0: those of the last iteration would mark parameters as covered that are not.
  for (State::Param& param : s.params) param.fetched_for = kNeverFetched;
  s.step = 0;
  // Our counter continues: parameters kept over the end of an iteration are live.
  if (s.compat.counter_restarts()) s.available = 0;
  return s.coordinator->mode;
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

/// The map is ordered by id, which is the order of issue.
std::vector<GatherId> FetchScheduler::in_flight_gathers() const {
  std::vector<GatherId> ids;
  for (const auto& [id, pending] : state_->gathers) {
    if (!pending.complete) ids.push_back(id);
  }
  return ids;
}

TraceMode FetchScheduler::mode() const noexcept { return state_->coordinator->mode; }
TraceMode FetchScheduler::mode(ModelMode mode) const noexcept {
  return state_->coordinators[state_->coordinator_of(mode)].mode;
}
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
  // A trace still being recorded is not followed yet.
  static const std::vector<ModuleId> kEmpty;
  return mode() == TraceMode::complete ? state_->coordinator->trace.modules() : kEmpty;
}

}  // namespace shardscope::plan
