#include "app/gui/model/scheduler_actions.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "app/analysis/decision_text.h"
#include "app/analysis/not_finite.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/gui/model/update_actions.h"
#include "app/store/gather_contents.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

std::string names_of(const store::Store& store, const std::vector<std::uint32_t>& params) {
  std::string out;
  constexpr std::size_t kNamed = 2;
  for (std::size_t i = 0; i < std::min(kNamed, params.size()); ++i) {
    out += (i == 0 ? "" : ", ") + short_param(store, params[i]);
  }
  if (params.size() > kNamed) out += " and " + std::to_string(params.size() - kNamed) + " more";
  return out;
}

/// Consecutive status changes with the same status and cause, merged into one line.
struct StatusGroup {
  ev::HeldStatus status;
  ev::StatusCause cause{};
  std::int64_t at_ns = 0;
  std::int64_t elems = 0;
  std::uint32_t module = ev::kNoId, gather = ev::kNoId;
  std::vector<std::uint32_t> params;
};

SchedulerAction action_of(const store::Store& store, const StatusGroup& group) {
  const ev::StatusCause cause = group.cause;
  const store::Vocabulary& words = words_of(store);
  SchedulerAction action;
  action.at_ns = group.at_ns;
  action.param = group.params.front();
  action.module = group.module;
  action.gather = group.gather;
  const std::string what =
      names_of(store, group.params) + " (" + count(static_cast<double>(group.elems)).text() + " elements)";
  switch (group.status.status()) {
    case plan::ParamStatus::in_flight:
      action.kind = cause == ev::StatusCause::prefetch ? ActionKind::prefetch : ActionKind::gather;
      action.text = cause == ev::StatusCause::prefetch ? "Prefetch started: " + what
                                                       : sentence(words.gather) + " started: " + what;
      break;
    case plan::ParamStatus::available:
      // A persistent parameter stays, whichever gather brought it; without a gather nothing has arrived.
      action.kind = cause == ev::StatusCause::persistent ? ActionKind::kept
                    : group.gather != ev::kNoId          ? ActionKind::available
                                                         : ActionKind::other;
      action.text = "Available: " + what;
      break;
    case plan::ParamStatus::not_available:
      if (cause == ev::StatusCause::external) {
        action.text = (group.module == ev::kNoId ? "Unregistered: " : "Registered: ") + what;
        break;
      }
      action.kind = ActionKind::release;
      action.text = group.gather == ev::kNoId && cause == ev::StatusCause::partition
                        ? "Secondary copy ended: " + what
                        : sentence(words.released) + ": " + what;
      if (group.status.secondary()) action.text += "; this rank keeps its part of a secondary copy";
      break;
  }
  action.reason = reason_of(store, ev::status_code(group.status.bits, cause), group.module, group.params);
  return action;
}

std::optional<SchedulerAction> action_of(const store::Store& store, const ev::Event& event,
                                         const analysis::DecisionLimits& limits) {
  const store::Vocabulary& words = words_of(store);
  SchedulerAction action;
  action.at_ns = static_cast<std::int64_t>(event.ticks);
  action.reason = analysis::reason_of(store, event, limits);
  switch (event.kind) {
    case ev::EventKind::fetch_decision: {
      const auto fields = ev::as<ev::EventKind::fetch_decision>(event);
      action.kind = ActionKind::decision;
      action.module = fields.module;
      action.gather = fields.gather;
      const std::string module = unit_name(store, fields.module);
      if (fields.stop == plan::PrefetchStop::returned) {
        action.param = static_cast<std::uint32_t>(fields.prefetched_elems);
        action.text = "Returned: " + short_param(store, action.param);
        return action;
      }
      action.text = fields.gather == ev::kNoId
                        ? module + ": nothing to " + words.gather
                        : module + ": " + words.gather + " " + std::to_string(fields.gather);
      action.text += fields.prefetched_elems > 0
                         ? ", prefetched " + count(static_cast<double>(fields.prefetched_elems)).text() +
                               " elements ahead"
                         : ", prefetched nothing";
      return action;
    }
    case ev::EventKind::in_flight_limit: {
      const auto fields = ev::as<ev::EventKind::in_flight_limit>(event);
      const bool gathers = fields.limited == plan::LimitedOperation::gathers;
      if (gathers) action.gather = fields.id;
      action.text = std::string("Host waits for ") + (gathers ? words.gather : words.bucket) + " " +
                    std::to_string(fields.id);
      return action;
    }
    case ev::EventKind::release_kept: {
      const auto fields = ev::as<ev::EventKind::release_kept>(event);
      action.kind = ActionKind::kept;
      action.module = fields.module;
      action.param = fields.param;
      action.text = "Kept: " + short_param(store, fields.param);
      return action;
    }
    case ev::EventKind::bucket_flush: {
      const auto fields = ev::as<ev::EventKind::bucket_flush>(event);
      action.kind = ActionKind::bucket_flush;
      action.text = sentence(words.bucket) + " " + std::to_string(fields.bucket) +
                    (words.has_buckets ? " reduced: " : ": ") + std::to_string(fields.params) +
                    (fields.params == 1 ? " gradient, " : " gradients, ") +
                    count(static_cast<double>(fields.elems)).text() + " elements";
      action.param = fields.trigger_param;
      return action;
    }
    case ev::EventKind::bucket_add: {
      const auto fields = ev::as<ev::EventKind::bucket_add>(event);
      action.kind = ActionKind::bucket_add;
      action.param = fields.param;
      action.text = "Gradient of " + short_param(store, fields.param) + " joined " + words.bucket + " " +
                    std::to_string(fields.bucket);
      action.reason = std::string(words.bucket) + " now holds " +
                      count(static_cast<double>(fields.bucket_elems)).text() + " elements";
      return action;
    }
    case ev::EventKind::trace_mode: {
      const auto fields = ev::as<ev::EventKind::trace_mode>(event);
      action.kind = ActionKind::trace;
      action.text = std::string("Trace: ") + word(fields.mode);
      return action;
    }
    case ev::EventKind::eval_trace_mode: {
      const auto fields = ev::as<ev::EventKind::eval_trace_mode>(event);
      action.text = std::string("Trace of evaluation: ") + word(fields.mode);
      return action;
    }
    case ev::EventKind::trace_invalidated: {
      const auto fields = ev::as<ev::EventKind::trace_invalidated>(event);
      action.kind = ActionKind::trace;
      action.module = fields.got_module;
      action.text = "Trace invalidated at its step " + std::to_string(fields.trace_step);
      return action;
    }
    case ev::EventKind::overflow: {
      const auto fields = ev::as<ev::EventKind::overflow>(event);
      action.kind = ActionKind::overflow;
      if (fields.any_rank == 0) return std::nullopt;  // checked without an overflow
      action.text = "Overflow: the step is skipped";
      return action;
    }
    case ev::EventKind::gradient_not_finite: {
      const auto fields = ev::as<ev::EventKind::gradient_not_finite>(event);
      action.kind = ActionKind::overflow;
      action.param = fields.param;
      action.text = "First gradient not finite: " + analysis::param_and_module(store, fields.param);
      action.reason = analysis::elements_text(fields) + " in this rank's partition";
      return action;
    }
    default:
      return update_action(store, event, limits);
  }
}

/// The outcome of a prefetch of `params` at its first use; names no module if it was released unused.
SchedulerAction outcome_action(const store::Store& store, const ev::Event& event,
                               std::span<const std::uint32_t> params) {
  const auto fields = ev::as<ev::EventKind::prefetch_outcome>(event);
  const plan::PrefetchOutcome outcome = fields.outcome;
  SchedulerAction action;
  action.kind = ActionKind::outcome;
  action.at_ns = static_cast<std::int64_t>(event.ticks);
  action.module = fields.module;
  action.gather = fields.gather;
  const std::string contents = store::contents_text(store, params);
  action.text = "Prefetch " + std::to_string(fields.gather) + (contents.empty() ? "" : ", for " + contents) +
                ": " + plan::to_string(outcome);
  const std::string at = fields.module == ev::kNoId ? "" : " at " + unit_name(store, fields.module);
  if (outcome == plan::PrefetchOutcome::late) {
    action.reason = "compute waited " + duration(-fields.slack_ns).text() + at;
  } else if (outcome <= plan::PrefetchOutcome::just_in_time) {
    action.reason = "there " + duration(fields.slack_ns).text() + " before it was needed" + at;
  }
  return action;
}

}  // namespace

std::vector<SchedulerAction> scheduler_actions(const store::Store& store, std::uint32_t rank,
                                               std::int64_t begin_ns, std::int64_t end_ns) {
  const analysis::DecisionLimits limits = analysis::limits_of(store.tables());
  std::vector<SchedulerAction> out;
  StatusGroup group;
  // A gather's parameters change their status when used or released, which is also when its outcome is
  // known.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> gathered;
  std::vector<std::pair<std::size_t, ev::Event>> outcomes;
  const auto close = [&] {
    if (!group.params.empty()) out.push_back(action_of(store, group));
    group.params.clear();
  };
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind == ev::EventKind::param_status) {
      const auto change = ev::as<ev::EventKind::param_status>(event);
      if (group.params.empty() || group.status != change.status || group.cause != change.cause ||
          group.gather != change.gather) {
        close();
        group.status = change.status;
        group.cause = change.cause;
        group.at_ns = static_cast<std::int64_t>(event.ticks);
        group.elems = 0;
        group.module = change.module;
        group.gather = change.gather;
      }
      group.params.push_back(change.param);
      group.elems += change.elems;
      if (change.gather != ev::kNoId &&
          std::ranges::find(gathered[change.gather], change.param) == gathered[change.gather].end())
        gathered[change.gather].push_back(change.param);
      return;
    }
    if (event.kind == ev::EventKind::prefetch_outcome) {
      close();
      outcomes.emplace_back(out.size(), event);
      out.emplace_back();
      return;
    }
    if (std::optional<SchedulerAction> action = action_of(store, event, limits)) {
      close();
      out.push_back(*std::move(action));
    }
  });
  close();
  for (const auto& [at, event] : outcomes) {
    const std::uint32_t gather = ev::as<ev::EventKind::prefetch_outcome>(event).gather;
    out[at] = outcome_action(store, event, gathered[gather]);
  }
  return out;
}

}  // namespace shardscope::gui
