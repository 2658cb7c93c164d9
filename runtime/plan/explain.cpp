#include "runtime/plan/explain.h"

#include <algorithm>
#include <vector>

namespace shardscope::plan {
namespace {

std::string elements(std::int64_t count) { return grouped(count) + (count == 1 ? " element" : " elements"); }

std::string module_name(ModuleId id, const ModelPlan& model) {
  if (raw(id) >= model.modules.size()) return "module " + std::to_string(raw(id));
  const std::string& path = model.modules[raw(id)].path;
  std::string text = path.empty() ? std::string("the root module") : path;
  text += " (module " + std::to_string(raw(id)) + ")";
  return text;
}

/// "a, b and 3 more (12 800 elements)".
std::string list(const std::vector<ParamId>& params, const ModelPlan& model) {
  constexpr std::size_t kNamed = 2;
  std::string text;
  std::int64_t elems = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ParamPlan& param = model.params.at(raw(params[i]));
    elems += param.elems;
    if (i >= kNamed) continue;
    if (i > 0) text += i + 1 == params.size() ? " and " : ", ";
    text += param.name;
  }
  if (params.size() > kNamed) text += " and " + std::to_string(params.size() - kNamed) + " more";
  return text + " (" + elements(elems) + ")";
}

}  // namespace

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, 1, ' ');
  }
  return digits;
}

std::string explain(PrefetchStop stop, std::int64_t available_elems, const SchedulerConfig& config) {
  switch (stop) {
    case PrefetchStop::disabled:
      return "nothing prefetched: stage3_prefetch_bucket_size is 0";
    case PrefetchStop::no_trace:
      return "nothing prefetched: no complete trace says which parameters come next";
    case PrefetchStop::end_of_trace:
      return "not prefetched further: every parameter of this iteration has been fetched";
    case PrefetchStop::bucket_full:
      return "not prefetched further: the prefetch bucket of " + elements(config.prefetch_bucket_elems) +
             " is full";
    case PrefetchStop::live_limit:
      return "not prefetched further: the live-parameter limit of " + elements(config.max_live_elems) +
             (available_elems < config.max_live_elems ? " leaves no room for the next one ("
                                                      : " was reached (") +
             grouped(available_elems) + " live)";
    case PrefetchStop::offloaded:
      return "not prefetched further: the next partition is still on NVMe";
    case PrefetchStop::returned:
      return "nothing prefetched: this is no fetch, a module returned a parameter";
  }
  return "?";
}

std::string explain(KeepReason reason, const ParamPlan& param, const SchedulerConfig& config) {
  switch (reason) {
    case KeepReason::persistent:
      return param.name + " stays: its " + elements(param.elems) +
             " are within the persistence threshold of " + grouped(config.param_persistence_elems);
    case KeepReason::reused_soon:
      return param.name + " stays: it is needed again within the reuse distance of " +
             elements(config.max_reuse_distance_elems);
    case KeepReason::already_fetched:
      return param.name + " stays: prefetch counted on it for a later module";
    case KeepReason::in_use:
      return param.name + " stays: another running module uses it";
    case KeepReason::external:
      return param.name +
             " stays: its module returned it, so it is an external parameter of what runs around it";
    case KeepReason::not_available:
      return param.name + " was not available: nothing to release";
    case KeepReason::reshard_off:
      return param.name + " stays: its group is not resharded after the forward";
  }
  return "?";
}

std::string explain(FlushReason reason, std::int64_t elems, std::int64_t bucket_elems) {
  switch (reason) {
    case FlushReason::full:
      return "reduced now: the next gradient does not fit the bucket of " + elements(bucket_elems) +
             " (it holds " + grouped(elems) + ")";
    case FlushReason::extra_large:
      return "reduced by itself: its " + elements(elems) + " are more than a bucket of " +
             grouped(bucket_elems);
    case FlushReason::epilogue:
      return "reduced now: backward has ended with " + elements(elems) + " in the bucket";
    case FlushReason::boundary:
      return "reduced now: the accumulation window has ended with " + elements(elems) + " in the bucket";
    case FlushReason::group_changed:
      return "reduced now: the next gradient is of another group of parameters";
    case FlushReason::group_complete:
      return "reduced now: every gradient of its group is there, " + elements(elems);
  }
  return "?";
}

std::string explain(const Flush& flush, const ModelPlan& model, std::int64_t bucket_elems) {
  if (flush.reason == FlushReason::full && raw(flush.trigger) < model.params.size()) {
    const ParamPlan& param = model.params[raw(flush.trigger)];
    return "reduced now: " + param.name + " (" + elements(param.elems) + ") does not fit the bucket of " +
           elements(bucket_elems) + ", which holds " + grouped(flush.elems);
  }
  return explain(flush.reason, flush.elems, bucket_elems);
}

std::string explain(const Invalidation& invalidation, const ModelPlan& model) {
  std::string text = "the trace no longer holds at step " + std::to_string(invalidation.trace_step) + ": ";
  switch (invalidation.cause) {
    case InvalidationCause::module_differs:
      text += "expected " + module_name(invalidation.expected, model) + ", but got " +
              module_name(invalidation.got, model);
      break;
    case InvalidationCause::trace_too_short:
      text += "it has " + std::to_string(invalidation.recorded) + " modules, but " +
              module_name(invalidation.got, model) + " ran after them";
      break;
    case InvalidationCause::params_differ:
      text += module_name(invalidation.got, model) + " uses parameters that were not recorded for it";
      break;
  }
  if (!invalidation.released.empty()) {
    text += "; " + list(invalidation.released, model) + " fetched ahead in vain";
  }
  return text + "; no prefetch in the rest of this iteration and in the next, which records anew";
}

std::string trace_cache_warning(const Invalidation& invalidation) {
  const std::string got = std::to_string(raw(invalidation.got));
  std::string text = "Invalidate trace cache @ step " + std::to_string(invalidation.trace_step);
  switch (invalidation.cause) {
    case InvalidationCause::module_differs:
      return text + ": expected module " + std::to_string(raw(invalidation.expected)) + ", but got module " +
             got;
    case InvalidationCause::trace_too_short:
      return text + " and module " + got + ": cache has only " + std::to_string(invalidation.recorded) +
             " modules";
    case InvalidationCause::params_differ:
      break;
  }
  return text + ": module " + got + " uses parameters that were not recorded for it";
}

std::string explain(TraceMode mode) {
  switch (mode) {
    case TraceMode::invalid:
      return "no trace: parameters are gathered when their module runs";
    case TraceMode::record:
      return "recording the order of modules; prefetch begins with the next iteration";
    case TraceMode::complete:
      return "following the recorded order of modules";
  }
  return "?";
}

std::string explain(const FetchPlan& plan, const ModelPlan& model, const SchedulerConfig& config) {
  std::string text;
  if (plan.invalidated) text = explain(*plan.invalidated, model) + ". ";
  if (!plan.gather.params.empty()) {
    text += "Gathered on demand: " + list(plan.gather.params, model) + ". ";
  } else if (!plan.wait_for.empty()) {
    text += "Waited for what was fetched ahead: " + list(plan.wait, model) + ". ";
  } else {
    text += "Nothing to wait for. ";
  }
  if (!plan.prefetch.params.empty()) text += "Prefetched: " + list(plan.prefetch.params, model) + ". ";
  std::string stop = explain(plan.stop, plan.available_elems, config);
  if (!stop.empty()) stop[0] = static_cast<char>(stop[0] - 'a' + 'A');
  return text + stop + ".";
}

std::string explain(const ReleasePlan& plan, const ModelPlan& model, const SchedulerConfig& config) {
  std::string text = plan.released.empty() ? "Nothing released" : "Released: " + list(plan.released, model);
  for (const Kept& kept : plan.kept) {
    text += "; " + explain(kept.reason, model.params.at(raw(kept.param)), config);
  }
  return text + ".";
}

}  // namespace shardscope::plan
