// Checks the recorded order of modules, and maintains the queue of uses derived from it.
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/plan/scheduler_state.h"

namespace shardscope::plan {

/// The mode is invalid for the rest of the iteration; the next begin_iteration() records (C7). `fetched_for`
/// is reset because its steps refer to the trace that is gone.
Invalidation FetchScheduler::State::invalidate(InvalidationCause cause, ModuleId expected, ModuleId got) {
  Invalidation invalidation;
  invalidation.cause = cause;
  invalidation.trace_step = step;
  invalidation.recorded = static_cast<std::int64_t>(coordinator->trace.modules().size());
  invalidation.expected = expected;
  invalidation.got = got;
  coordinator->mode = TraceMode::invalid;
  // The rest of the iteration fetches without prefetch and releases at once: the order is unknown.
  coordinator->trace.clear();
  queue.clear();
  for (Param& param : params) param.fetched_for = kNeverFetched;
  // Prefetched parameters may never be used; those that no running module holds are freed.
  Drain gone = drain();
  invalidation.wait_for = std::move(gone.wait_for);
  invalidation.released = std::move(gone.released);
  invalidation.completed = std::move(gone.completed);
  return invalidation;
}

/// Compares the module, and the parameters that it still needs, with the trace at this step.
std::optional<Invalidation> FetchScheduler::State::check_trace(ModuleId module) {
  // While recording there is nothing to compare with.
  if (coordinator->mode != TraceMode::complete) return std::nullopt;
  const auto& order = coordinator->trace.modules();
  if (static_cast<std::int64_t>(order.size()) <= step) {
    return invalidate(InvalidationCause::trace_too_short, kNone<ModuleId>, module);
  }
  const ModuleId expected = order[static_cast<std::size_t>(step)];
  if (expected != module) return invalidate(InvalidationCause::module_differs, expected, module);
  const std::vector<ParamId> wanted = not_fetched_yet(module);
  // Sets, both ascending: the order of parameters within a module does not matter.
  const std::vector<ParamId> queued = next_in_queue(wanted.size());
  if (queued != wanted) {
    // DeepSpeed ends the run here; recording again is as safe and lets it continue.
    if (compat.ends_run_on_other_params()) tracing_error(module, wanted, queued);
    return invalidate(InvalidationCause::params_differ, expected, module);
  }
  return std::nullopt;
}

/// Parameters that no fetch or prefetch of this iteration covers for this step. While the trace holds, these
/// are the ones at the front of the queue.
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

/// Removes `distinct` different parameters from the queue; a parameter used twice in a row counts once.
void FetchScheduler::State::pop_from_queue(std::size_t distinct) {
  std::set<ParamId> popped;
  while (!queue.empty() && popped.size() < distinct) {
    const TracedParam next = queue.front();
    queue.pop_front();
    // The latest use that is covered; not_fetched_yet() and decide_release() compare steps with it.
    at(next.param).fetched_for = next.step;
    popped.insert(next.param);
  }
}

}  // namespace shardscope::plan
