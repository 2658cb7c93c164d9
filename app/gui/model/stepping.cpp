#include "app/gui/model/stepping.h"

#include <algorithm>

#include "app/gui/model/names.h"
#include "instrumentation/param_status.h"
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

/// The last earlier gate of the same kind and module as `here`.
std::optional<GateRow> earlier_alike(const store::Store& store, std::uint32_t rank, const GateRow& here) {
  const bool by_id = is_module_gate(here.kind);
  return store.gate_before(rank, here.at_ns + 1, [&](const GateRow& gate) {
    return gate.number < here.number && gate.kind == here.kind && (!by_id || gate.id == here.id);
  });
}

/// The gate that follows `here`.
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
                                   RunTo target, Direction direction, std::int64_t until_ns) {
  const auto found = search(store, rank, at_ns, direction, [&](const GateRow& gate) {
    if (gate.at_ns > until_ns) return true;  // stops the search
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
  return found && found->at_ns <= until_ns ? found : std::nullopt;
}

GatePosition gate_position(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  GatePosition out;
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == rank) out.holding = row.gate.holding && at_ns >= row.last_ns;
  }
  const std::optional<GateRow> here = gate_at(store, rank, at_ns);
  if (!here) return out;
  out.known = true;
  out.gate_number = here->number;
  out.place = gate_place(store, here->kind, here->id);
  return out;
}

std::string brief_position(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  const std::optional<GateRow> here = gate_at(store, rank, at_ns);
  return here ? brief_gate_place(store, here->kind, here->id) : "";
}

ActionsAround actions_around(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  ActionsAround out;
  const std::optional<GateRow> here = gate_at(store, rank, at_ns);
  if (!here) return out;
  const auto previous = store.gate_before(rank, here->at_ns + 1,
                                          [&](const GateRow& gate) { return gate.number < here->number; });
  if (previous) {
    out.before = scheduler_actions(store, rank, previous->at_ns, here->at_ns);
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
  out.next = scheduler_actions(store, rank, model->at_ns, next->at_ns);
  out.next_place = gate_place(store, next->kind, next->id);
  return out;
}

StatusLists status_lists(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  StatusLists out;
  if (!store.has_tables()) return out;
  const auto& params = store.tables().params;
  std::vector<store::ParamState> states(params.size());
  store.param_states(rank, at_ns, states);
  out.known = store.is_known(rank, at_ns);
  if (!out.known) return out;
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
