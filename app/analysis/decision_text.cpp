#include "app/analysis/decision_text.h"

#include <fmt/format.h>

#include <cmath>

#include "app/analysis/quantity_text.h"
#include "app/analysis/zero_settings.h"
#include "app/store/module_name.h"
#include "runtime/plan/in_flight_limit.h"

namespace shardscope::analysis {
namespace {

using instrumentation::EventKind;
using plan::FlushReason;
using plan::InvalidationCause;
using plan::KeepReason;
using plan::PrefetchStop;

using OptionalCount = std::optional<std::int64_t>;

/// "48.1M elements", "1 element".
std::string elements(std::int64_t count) {
  return elements_text(count) + (count == 1 ? " element" : " elements");
}

/// ": 48.1M of 50M elements"; with one number only that one, with none an empty text.
std::string reached_of(OptionalCount reached, OptionalCount limit) {
  if (reached && limit) return ": " + elements_text(*reached) + " of " + elements(*limit);
  if (limit) return " of " + elements(*limit);
  return reached ? ": " + elements(*reached) : std::string();
}

/// " of 50M elements", " of 4 steps", or empty.
std::string of_elements(OptionalCount limit) { return limit ? " of " + elements(*limit) : std::string(); }
std::string of_steps(OptionalCount steps) {
  return steps ? fmt::format(" of {} step{}", *steps, *steps == 1 ? "" : "s") : std::string();
}

/// "fc1.weight (16.4k elements)"; empty for an id that is not in the tables.
std::string param_and_size(const store::Store& store, std::uint32_t id) {
  if (!store.has_tables() || id >= store.tables().params.size()) return {};
  const auto& param = store.tables().params[id];
  return param.name + " (" + elements(param.elems) + ")";
}

/// The number that decided a stop (PrefetchStop); nullopt if none did.
OptionalCount reached_by(PrefetchStop stop, std::int64_t prefetched_elems, std::int64_t available_elems) {
  if (stop == PrefetchStop::bucket_full) return prefetched_elems;
  if (stop == PrefetchStop::live_limit) return available_elems;
  return std::nullopt;
}

}  // namespace

DecisionLimits limits_of(const instrumentation::RunTables& tables) {
  if (!names_zero_settings(tables.config_json)) return {};
  const plan::ZeroConfig zero = zero_of(tables);
  const auto unless_auto = [](std::int64_t steps) {
    return steps == plan::ZenFlowConfig::kAuto ? OptionalCount() : OptionalCount(steps);
  };
  DecisionLimits limits;
  limits.gathers_one_by_one = zero.allgather_sequential;
  limits.prefetch_bucket_elems = zero.prefetch_bucket_size;
  limits.max_live_elems = zero.max_live_parameters;
  limits.max_reuse_elems = zero.max_reuse_distance;
  limits.param_persistence_elems = zero.param_persistence_threshold;
  limits.reduce_bucket_elems = zero.reduce_bucket_size;
  if (zero.zenflow) {
    limits.select_interval_steps = unless_auto(zero.zenflow->select_interval);
    limits.update_interval_steps = unless_auto(zero.zenflow->update_interval);
  }
  if (zero.loco) limits.feedback_reset_steps = zero.loco->reset_t;
  return limits;
}

std::string explain(PrefetchStop stop, std::optional<std::int64_t> reached, const DecisionLimits& limits) {
  switch (stop) {
    case PrefetchStop::disabled:
      return "prefetching is off: stage3_prefetch_bucket_size is 0";
    case PrefetchStop::no_trace:
      return "nothing prefetched: no complete trace says yet which parameters come next";
    case PrefetchStop::end_of_trace:
      return "prefetching stopped at the end of the trace: every parameter of this iteration has been "
             "fetched";
    case PrefetchStop::bucket_full:
      if (limits.gathers_one_by_one)
        return "prefetching stopped after one parameter: stage3_allgather_sequential";
      return "prefetching stopped at stage3_prefetch_bucket_size" +
             reached_of(reached, limits.prefetch_bucket_elems);
    case PrefetchStop::live_limit:
      return "prefetching stopped at stage3_max_live_parameters" +
             reached_of(reached, limits.max_live_elems) + (reached ? " are live" : "");
    case PrefetchStop::offloaded:
      return "prefetching stopped at a shard that is still on NVMe";
    case PrefetchStop::returned:
      return "nothing prefetched: a module returned a parameter, which fetches no other";
  }
  return "unknown reason";
}

std::string explain(KeepReason reason, std::int64_t elems, const DecisionLimits& limits) {
  switch (reason) {
    case KeepReason::persistent:
      return "persistent: " + elements(elems) + (elems == 1 ? " is" : " are") +
             " within stage3_param_persistence_threshold" + of_elements(limits.param_persistence_elems);
    case KeepReason::reused_soon:
      return "needed again within stage3_max_reuse_distance" + of_elements(limits.max_reuse_elems);
    case KeepReason::already_fetched:
      return "a prefetch already counts on it for a later module";
    case KeepReason::in_use:
      return "another running module uses it";
    case KeepReason::external:
      return "its module returned it: it is an external parameter of the module around it";
    case KeepReason::not_available:
      return "it was not available: nothing to release";
    case KeepReason::reshard_off:
      return "its group is not resharded after the forward pass";
  }
  return "unknown reason";
}

std::string explain(FlushReason reason, std::int64_t elems, const std::string& trigger,
                    const DecisionLimits& limits) {
  const auto bucket = [&] { return "reduce_bucket_size" + of_elements(limits.reduce_bucket_elems); };
  switch (reason) {
    case FlushReason::full:
      return (trigger.empty() ? "the next gradient" : trigger) + " does not fit " + bucket() +
             " beside the " + elements_text(elems) + " in the bucket";
    case FlushReason::extra_large:
      return "one gradient of " + elements(elems) + " is larger than " + bucket();
    case FlushReason::epilogue:
      return "backward has ended with " + elements(elems) + " in the bucket";
    case FlushReason::boundary:
      return "gradient accumulation has ended with " + elements(elems) + " to reduce";
    case FlushReason::group_changed:
      return (trigger.empty() ? "the next gradient" : trigger) + " is of another group than the " +
             elements(elems) + " in the bucket";
    case FlushReason::group_complete:
      return "every gradient of its group is there: " + elements(elems);
  }
  return "unknown reason";
}

std::string explain(plan::SelectionCause cause, const DecisionLimits& limits) {
  switch (cause) {
    case plan::SelectionCause::not_recorded:
      return {};
    case plan::SelectionCause::first:
      return "the warm-up is over";
    case plan::SelectionCause::interval:
      return "select_interval" + of_steps(limits.select_interval_steps) + " is over";
  }
  return {};
}

std::string explain(plan::UpdateCause cause, const DecisionLimits& limits) {
  switch (cause) {
    case plan::UpdateCause::warm_up:
      return "warm-up: nothing is chosen yet";
    case plan::UpdateCause::interval:
      return "update_interval" + of_steps(limits.update_interval_steps) + " is over";
    case plan::UpdateCause::votes:
      return "enough matrices voted for it in the step before";
    case plan::UpdateCause::before_selection:
      return "the next step chooses columns anew";
  }
  return {};
}

std::string explain(const store::Store& store, const TraceInvalidation& invalidation) {
  std::string length;
  if (invalidation.recorded) length = std::to_string(*invalidation.recorded) + " modules";
  switch (invalidation.cause) {
    case InvalidationCause::trace_too_short:
      return "ran " + store::module_name(store, invalidation.got) + " after the end of the trace" +
             (length.empty() ? "" : ", which has only " + length);
    case InvalidationCause::params_differ:
      return "ran " + store::module_name(store, invalidation.got) +
             " with parameters that were not recorded for it" +
             (length.empty() ? "" : " (trace of " + length + ")");
    case InvalidationCause::module_differs:
      break;
  }
  return "expected " + store::module_name(store, invalidation.expected) + " but ran " +
         store::module_name(store, invalidation.got) + (length.empty() ? "" : " (trace of " + length + ")");
}

std::string reason_of(const store::Store& store, const instrumentation::Event& event,
                      const DecisionLimits& limits) {
  using instrumentation::as;
  switch (event.kind) {
    case EventKind::fetch_decision: {
      const auto fields = as<EventKind::fetch_decision>(event);
      if (fields.stop == PrefetchStop::returned) {
        return "an external parameter of " + store::module_name(store, fields.module) +
               ", which keeps it while it runs";
      }
      return explain(fields.stop, reached_by(fields.stop, fields.prefetched_elems, fields.available_elems),
                     limits);
    }
    case EventKind::release_kept: {
      const auto fields = as<EventKind::release_kept>(event);
      return explain(fields.reason, fields.elems, limits);
    }
    case EventKind::bucket_flush: {
      const auto fields = as<EventKind::bucket_flush>(event);
      return explain(fields.reason, fields.elems, param_and_size(store, fields.trigger_param), limits);
    }
    case EventKind::in_flight_limit: {
      const auto fields = as<EventKind::in_flight_limit>(event);
      return fmt::format("{} {} are in flight, the limit is {}", fields.in_flight,
                         fields.limited == plan::LimitedOperation::gathers ? "gathers" : "reductions",
                         fields.limit);
    }
    case EventKind::trace_invalidated:
      return explain(store, read_invalidation(0, event));
    case EventKind::columns_selected:
      return explain(as<EventKind::columns_selected>(event).cause, limits);
    case EventKind::deferred_update: {
      const auto cause = as<EventKind::deferred_update>(event).cause;
      return cause ? explain(*cause, limits) : std::string();
    }
    case EventKind::feedback_reset:
      return "reset_T" + of_steps(limits.feedback_reset_steps) + " is over";
    default:
      return {};
  }
}

}  // namespace shardscope::analysis
