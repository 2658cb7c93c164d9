#include "app/gui/model/stepping.h"

#include <algorithm>
#include <unordered_map>

#include "app/analysis/coordinator.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/gui/model/update_deeds.h"
#include "app/store/gather_contents.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

bool is_module_gate(ev::GateKind kind) {
  return kind == ev::GateKind::pre_forward || kind == ev::GateKind::post_forward ||
         kind == ev::GateKind::pre_backward || kind == ev::GateKind::post_backward;
}

bool matches(ev::GateKind kind, StepUnit unit) {
  switch (unit) {
    case StepUnit::event:
      return true;
    case StepUnit::module:
      return kind == ev::GateKind::pre_forward || kind == ev::GateKind::pre_backward;
    case StepUnit::micro_step:
      return kind == ev::GateKind::micro_step;
    case StepUnit::step:
      return kind == ev::GateKind::step;
  }
  return false;
}

std::optional<GateRow> search(const store::Store& store, std::uint32_t rank, std::int64_t at_ns,
                              Direction direction, const store::Store::GateMatch& match) {
  return direction == Direction::forward ? store.gate_after(rank, at_ns, match)
                                         : store.gate_before(rank, at_ns, match);
}

bool uses_param(const store::Store& store, std::uint32_t module, std::uint32_t param) {
  if (!store.has_tables()) return false;
  const auto& params = store.tables().params;
  if (param >= params.size()) return false;
  return std::ranges::find(params[param].modules, module) != params[param].modules.end();
}

std::string names_of(const store::Store& store, const std::vector<std::uint32_t>& params) {
  std::string out;
  constexpr std::size_t kNamed = 2;
  for (std::size_t i = 0; i < std::min(kNamed, params.size()); ++i) {
    out += (i == 0 ? "" : ", ") + std::string(tail_path(param_name(store, params[i])));
  }
  if (params.size() > kNamed) out += " and " + std::to_string(params.size() - kNamed) + " more";
  return out;
}

/// Status changes that follow one another with the same status and cause become one line.
struct StatusGroup {
  std::uint8_t code = 0;
  std::int64_t at_ns = 0;
  std::int64_t elems = 0;
  std::uint32_t module = ev::kNoId, gather = ev::kNoId;
  std::vector<std::uint32_t> params;
};

Deed deed_of(const store::Store& store, const StatusGroup& group) {
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(group.code));
  const auto cause = static_cast<ev::StatusCause>(group.code >> 4);
  Deed deed;
  deed.at_ns = group.at_ns;
  deed.param = group.params.front();
  deed.module = group.module;
  deed.gather = group.gather;
  const std::string what =
      names_of(store, group.params) + " (" + count(static_cast<double>(group.elems)).text() + " elements)";
  switch (status) {
    case plan::ParamStatus::in_flight:
      deed.text = (cause == ev::StatusCause::prefetch ? "Prefetch started: " : "Gather started: ") + what;
      break;
    case plan::ParamStatus::available:
      deed.text = "Available: " + what;
      break;
    case plan::ParamStatus::not_available:
      if (cause == ev::StatusCause::external) {
        deed.text = (group.module == ev::kNoId ? "Unregistered: " : "Registered: ") + what;
        break;
      }
      deed.text = group.gather == ev::kNoId && cause == ev::StatusCause::partition
                      ? "Secondary copy ended: " + what
                      : "Released: " + what;
      if (ev::secondary_held(group.code)) deed.text += "; this rank keeps its part of a secondary copy";
      break;
  }
  deed.reason = reason_of(store, group.code, group.module, group.params);
  return deed;
}

std::optional<Deed> deed_of(const store::Store& store, const ev::Event& event) {
  Deed deed;
  deed.at_ns = static_cast<std::int64_t>(event.ticks);
  switch (event.kind) {
    case ev::EventKind::fetch_decision: {
      const auto fields = ev::as<ev::EventKind::fetch_decision>(event);
      const plan::PrefetchStop stop = fields.stop;
      deed.module = fields.module;
      deed.gather = fields.gather;
      const std::string module(tail_path(module_name(store, fields.module)));
      if (stop == plan::PrefetchStop::returned) {
        deed.param = static_cast<std::uint32_t>(fields.prefetched_elems);
        deed.text = "Returned: " + std::string(tail_path(param_name(store, deed.param)));
        deed.reason = "an external parameter of " + module + ", which keeps it while it runs";
        return deed;
      }
      deed.text = fields.gather == ev::kNoId ? module + ": nothing to gather"
                                             : module + ": gather " + std::to_string(fields.gather);
      deed.text += fields.prefetched_elems > 0
                       ? ", prefetched " + count(static_cast<double>(fields.prefetched_elems)).text() +
                             " elements ahead"
                       : ", prefetched nothing";
      deed.reason = std::string("Prefetching stopped: ") + sentence(stop);
      return deed;
    }
    case ev::EventKind::in_flight_limit: {
      const auto fields = ev::as<ev::EventKind::in_flight_limit>(event);
      const bool gathers = fields.limited == plan::InFlight::gathers;
      if (gathers) deed.gather = fields.id;
      deed.text =
          std::string("Host waits for ") + (gathers ? "gather " : "bucket ") + std::to_string(fields.id);
      deed.reason = std::to_string(fields.in_flight) + (gathers ? " gathers" : " reductions") +
                    " are in flight, the limit is " + std::to_string(fields.limit);
      return deed;
    }
    case ev::EventKind::release_kept: {
      const auto fields = ev::as<ev::EventKind::release_kept>(event);
      deed.module = fields.module;
      deed.param = fields.param;
      deed.text = "Kept: " + std::string(tail_path(param_name(store, fields.param)));
      deed.reason = sentence(fields.reason);
      return deed;
    }
    case ev::EventKind::bucket_flush: {
      const auto fields = ev::as<ev::EventKind::bucket_flush>(event);
      deed.text = "Bucket " + std::to_string(fields.bucket) + " reduced: " + std::to_string(fields.params) +
                  " gradients, " + count(static_cast<double>(fields.elems)).text() + " elements";
      deed.reason = sentence(fields.reason);
      deed.param = fields.trigger_param;
      return deed;
    }
    case ev::EventKind::bucket_add: {
      const auto fields = ev::as<ev::EventKind::bucket_add>(event);
      deed.param = fields.param;
      deed.text = "Gradient of " + std::string(tail_path(param_name(store, fields.param))) +
                  " joined bucket " + std::to_string(fields.bucket);
      deed.reason =
          "bucket now holds " + count(static_cast<double>(fields.bucket_elems)).text() + " elements";
      return deed;
    }
    case ev::EventKind::trace_mode: {
      const auto fields = ev::as<ev::EventKind::trace_mode>(event);
      deed.text = std::string("Trace: ") + word(fields.mode);
      return deed;
    }
    case ev::EventKind::trace_invalidated: {
      const auto fields = ev::as<ev::EventKind::trace_invalidated>(event);
      deed.module = fields.got_module;
      deed.text = "Trace invalidated at its step " + std::to_string(fields.trace_step);
      deed.reason = analysis::cause_text(store, analysis::read_invalidation(0, event));
      return deed;
    }
    case ev::EventKind::overflow: {
      const auto fields = ev::as<ev::EventKind::overflow>(event);
      if (fields.any_rank == 0) return std::nullopt;  // the check was made, nothing overflowed
      deed.text = "Overflow: the step is skipped";
      return deed;
    }
    default:
      return update_deed(store, event);
  }
}

/// What became of a prefetch of `params` at its first use; of one that is given up the event names no module.
Deed outcome_deed(const store::Store& store, const ev::Event& event, std::span<const std::uint32_t> params) {
  const auto fields = ev::as<ev::EventKind::prefetch_outcome>(event);
  const plan::PrefetchOutcome outcome = fields.outcome;
  Deed deed;
  deed.at_ns = static_cast<std::int64_t>(event.ticks);
  deed.module = fields.module;
  deed.gather = fields.gather;
  const std::string contents = store::contents_text(store, params);
  deed.text = "Prefetch " + std::to_string(fields.gather) + (contents.empty() ? "" : ", for " + contents) +
              ": " + plan::to_string(outcome);
  const std::string at =
      fields.module == ev::kNoId ? "" : " at " + std::string(tail_path(module_name(store, fields.module)));
  if (outcome == plan::PrefetchOutcome::late) {
    deed.reason = "compute waited " + duration(-fields.slack_ns).text() + at;
  } else if (outcome <= plan::PrefetchOutcome::just_in_time) {
    deed.reason = "there " + duration(fields.slack_ns).text() + " before it was needed" + at;
  }
  return deed;
}

/// The place in an earlier micro-step that looks like `here`: same kind and module.
std::optional<GateRow> earlier_alike(const store::Store& store, std::uint32_t rank, const GateRow& here) {
  const bool by_id = is_module_gate(here.kind);
  return store.gate_before(rank, here.at_ns + 1, [&](const GateRow& gate) {
    return gate.number < here.number && gate.kind == here.kind && (!by_id || gate.id == here.id);
  });
}

/// The gate right after `here`.
std::optional<GateRow> following(const store::Store& store, std::uint32_t rank, const GateRow& here) {
  return store.gate_after(rank, here.at_ns - 1,
                          [&](const GateRow& gate) { return gate.number > here.number; });
}

}  // namespace

ev::StopRule stop_rule(StepUnit unit) noexcept {
  ev::StopRule rule;
  switch (unit) {
    case StepUnit::event:
      rule.kind = ev::StopRule::Kind::any_gate;
      break;
    case StepUnit::module:
      rule.kind = ev::StopRule::Kind::module;
      break;
    case StepUnit::micro_step:
      rule.kind = ev::StopRule::Kind::micro_step;
      break;
    case StepUnit::step:
      rule.kind = ev::StopRule::Kind::step;
      break;
  }
  return rule;
}

ev::StopRule stop_rule(RunTo target) noexcept {
  ev::StopRule rule;
  rule.id = target.id;
  switch (target.kind) {
    case RunToKind::module:
      rule.kind = ev::StopRule::Kind::run_to_module;
      break;
    case RunToKind::param:
      rule.kind = ev::StopRule::Kind::run_to_param;
      break;
    case RunToKind::step:
      rule.kind = ev::StopRule::Kind::run_to_step;
      break;
  }
  return rule;
}

const char* word(StepUnit unit) noexcept {
  switch (unit) {
    case StepUnit::event:
      return "event";
    case StepUnit::module:
      return "module";
    case StepUnit::micro_step:
      return "micro-step";
    case StepUnit::step:
      return "step";
  }
  return "";
}

std::optional<GateRow> gate_at(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  return store.gate_before(rank, at_ns + 1);
}

std::optional<GateRow> gate_beside(const store::Store& store, std::uint32_t rank, std::int64_t at_ns,
                                   StepUnit unit, Direction direction) {
  return search(store, rank, at_ns, direction, [&](const GateRow& gate) { return matches(gate.kind, unit); });
}

std::optional<GateRow> gate_run_to(const store::Store& store, std::uint32_t rank, std::int64_t at_ns,
                                   RunTo target, Direction direction) {
  return search(store, rank, at_ns, direction, [&](const GateRow& gate) {
    switch (target.kind) {
      case RunToKind::step:
        return gate.kind == ev::GateKind::step && gate.id == target.id;
      case RunToKind::module:
        return matches(gate.kind, StepUnit::module) && gate.id == target.id;
      case RunToKind::param:
        return matches(gate.kind, StepUnit::module) && uses_param(store, gate.id, target.id);
    }
    return false;
  });
}

std::vector<Deed> deeds_between(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                std::int64_t end_ns) {
  std::vector<Deed> out;
  StatusGroup group;
  // A gather's parameters change their status when it is used or given up, which is when its outcome is
  // known.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> gathered;
  std::vector<std::pair<std::size_t, ev::Event>> outcomes;
  const auto close = [&] {
    if (!group.params.empty()) out.push_back(deed_of(store, group));
    group.params.clear();
  };
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind == ev::EventKind::param_status) {
      const auto change = ev::as<ev::EventKind::param_status>(event);
      if (group.params.empty() || group.code != event.code || group.gather != change.gather) {
        close();
        group.code = event.code;
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
    if (std::optional<Deed> deed = deed_of(store, event)) {
      close();
      out.push_back(*std::move(deed));
    }
  });
  close();
  for (const auto& [at, event] : outcomes) {
    const std::uint32_t gather = ev::as<ev::EventKind::prefetch_outcome>(event).gather;
    out[at] = outcome_deed(store, event, gathered[gather]);
  }
  return out;
}

Standing standing_of(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  Standing out;
  out.rank = rank;
  const std::optional<GateRow> here = gate_at(store, rank, at_ns);
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == rank) out.holding = row.gate.holding && at_ns >= row.last_ns;
  }
  if (!here) return out;
  out.known = true;
  out.gate_number = here->number;
  out.gate_ns = here->at_ns;
  out.place = gate_place(store, here->kind, here->id);
  const auto previous = store.gate_before(rank, here->at_ns + 1,
                                          [&](const GateRow& gate) { return gate.number < here->number; });
  if (previous) {
    out.before = deeds_between(store, rank, previous->at_ns, here->at_ns);
    out.previous_place = gate_place(store, previous->kind, previous->id);
  }
  std::optional<GateRow> model = here, next = following(store, rank, *here);
  if (!next) {
    model = earlier_alike(store, rank, *here);
    if (!model) return out;
    next = following(store, rank, *model);
    if (!next) return out;
    out.predicted = true;
  }
  out.next = deeds_between(store, rank, model->at_ns, next->at_ns);
  out.next_place = gate_place(store, next->kind, next->id);
  return out;
}

StatusLists status_lists(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  StatusLists out;
  if (!store.has_tables()) return out;
  const auto& params = store.tables().params;
  std::vector<store::ParamState> states(params.size());
  store.param_states(rank, at_ns, states);
  for (std::uint32_t param = 0; param < params.size(); ++param) {
    const std::int64_t elems = params[param].elems;
    switch (static_cast<plan::ParamStatus>(ev::status_of(states[param].status))) {
      case plan::ParamStatus::not_available:
        out.not_available.push_back(param);
        out.not_available_elems += elems;
        break;
      case plan::ParamStatus::in_flight:
        out.in_flight.push_back(param);
        out.in_flight_elems += elems;
        break;
      case plan::ParamStatus::available:
        if (params[param].persistent) {
          out.persistent.push_back(param);
          out.persistent_elems += elems;
        } else {
          out.available.push_back(param);
          out.available_elems += elems;
        }
        break;
    }
  }
  return out;
}

}  // namespace shardscope::gui
