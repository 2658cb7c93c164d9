#include "app/analysis/recorded_boundaries.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/analysis/spans.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/gate.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {
namespace {

using plan::ModuleId;
using plan::ParamId;
using plan::Visit;
using plan::VisitKind;
using GateRow = store::Store::GateRow;

/// Parameters that a module reads although they belong to another: those gathered for it by attribute access,
/// or fetched with it since.
std::set<std::pair<std::uint32_t, std::uint32_t>> external_uses_in(const store::Store& store,
                                                                   std::uint32_t rank, std::int64_t begin_ns,
                                                                   std::int64_t end_ns) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> uses;
  const auto& modules = store.tables().modules;
  const auto& params = store.tables().params;
  for (const ev::Event& event : store.instants(rank, begin_ns, end_ns)) {
    if (event.kind != ev::EventKind::param_status) continue;
    const auto change = ev::as<ev::EventKind::param_status>(event);
    if (change.module >= modules.size() || change.param >= params.size()) continue;
    if (change.cause != ev::StatusCause::external && change.cause != ev::StatusCause::fetch) continue;
    const auto& own = modules[change.module].params;
    if (std::find(own.begin(), own.end(), change.param) == own.end())
      uses.emplace(change.module, change.param);
  }
  return uses;
}

}  // namespace

plan::ModelPlan model_of(const ev::RunTables& tables) {
  plan::ModelPlan model;
  for (const ev::ModuleInfo& info : tables.modules) {
    plan::ModulePlan module;
    module.id = ModuleId{info.id};
    module.parent = ModuleId{info.parent};
    module.path = info.path;
    module.type = info.type;
    for (const std::uint32_t param : info.params) module.params.push_back(ParamId{param});
    module.hooks = info.hooks;
    model.modules.push_back(std::move(module));
  }
  for (const ev::ModuleInfo& info : tables.modules) {
    if (info.hooks || info.params.empty()) continue;
    std::uint32_t above = info.parent;
    while (above < tables.modules.size() && !tables.modules[above].hooks)
      above = tables.modules[above].parent;
    if (above < model.modules.size()) model.modules[above].leaf = true;
  }
  for (const ev::ParamInfo& info : tables.params) {
    plan::ParamPlan param;
    param.id = ParamId{info.id};
    param.name = info.name;
    param.shape = info.shape;
    param.elems = info.elems;
    param.trainable = !info.frozen;
    for (const std::uint32_t module : info.modules) param.modules.push_back(ModuleId{module});
    model.elems += param.elems;
    model.params.push_back(std::move(param));
  }
  return model;
}

bool numbered_in_order(const ev::RunTables& tables) {
  for (std::size_t i = 0; i < tables.modules.size(); ++i) {
    const ev::ModuleInfo& module = tables.modules[i];
    if (module.id != i || (module.parent != ev::kNoId && module.parent >= i)) return false;
    for (const std::uint32_t param : module.params) {
      if (param >= tables.params.size()) return false;
    }
  }
  for (std::size_t i = 0; i < tables.params.size(); ++i) {
    if (tables.params[i].id != i) return false;
  }
  return !tables.modules.empty();
}

std::optional<VisitKind> visit_kind(ev::GateKind kind) {
  switch (kind) {
    case ev::GateKind::pre_forward:
      return VisitKind::pre_forward;
    case ev::GateKind::post_forward:
      return VisitKind::post_forward;
    case ev::GateKind::pre_backward:
      return VisitKind::pre_backward;
    case ev::GateKind::post_backward:
      return VisitKind::post_backward;
    default:
      return std::nullopt;
  }
}

std::optional<MicroStepGates> micro_step_at(const store::Store& store, std::uint32_t rank,
                                            std::int64_t at_ns) {
  constexpr int kMostTried = 64;  // limit on micro-steps truncated by dropped events
  const auto begins = [](const GateRow& gate) { return gate.kind == ev::GateKind::micro_step; };
  const auto whole_from = [&](const GateRow& first) -> std::optional<MicroStepGates> {
    const auto last = store.gate_after(rank, first.at_ns - 1, [&](const GateRow& gate) {
      return gate.number > first.number && !visit_kind(gate.kind) && gate.kind != ev::GateKind::bucket;
    });
    if (!last) return std::nullopt;
    MicroStepGates gates = store.gates(rank, first.at_ns, last->at_ns + 1);
    std::erase_if(
        gates, [&](const GateRow& gate) { return gate.number < first.number || gate.number > last->number; });
    return gates;
  };
  auto first = at_ns == store::Store::kBegin ? std::nullopt : store.gate_before(rank, at_ns + 1, begins);
  for (int tried = 0; first && tried < kMostTried; ++tried) {
    if (auto found = whole_from(*first)) return found;
    first = store.gate_before(rank, first->at_ns, begins);
  }
  first = store.gate_after(rank, at_ns, begins);
  return first ? whole_from(*first) : std::nullopt;
}

Boundaries boundaries_of(const store::Store& store, std::uint32_t rank, const MicroStepGates& gates) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> external =
      external_uses_in(store, rank, gates.front().at_ns, gates.back().at_ns);
  // Later micro-steps fetch them with the module; in the first one they are recorded as attribute accesses.
  if (const auto first = micro_step_at(store, rank, store::Store::kBegin)) {
    external.merge(external_uses_in(store, rank, first->front().at_ns, first->back().at_ns));
  }
  Boundaries out;
  for (std::size_t i = 0; i + 1 < gates.size(); ++i) {
    const auto kind = visit_kind(gates[i].kind);
    if (kind) {
      out.visits.push_back({*kind, ModuleId{gates[i].id}, plan::kNone<ParamId>});
      out.gates.push_back(gates[i]);
    }
    bool own = kind == VisitKind::pre_forward || kind == VisitKind::pre_backward;
    // At its post-forward gate a module first returns parameters; it reads those that are not its own.
    const bool ended = kind == VisitKind::post_forward;
    const ModuleId module{gates[i].id};
    bool read_to_return = false;
    const auto before_release = [&](const Visit& visit) {
      out.visits.insert(ended ? out.visits.end() - 1 : out.visits.end(), visit);
      out.gates.push_back(gates[i]);
    };
    std::map<std::uint32_t, std::uint32_t> taken;  // accesses of each module since this gate
    for (const ev::Event& event : store.instants(rank, gates[i].at_ns, gates[i + 1].at_ns)) {
      if (event.kind != ev::EventKind::fetch_decision) continue;
      const auto decision = ev::as<ev::EventKind::fetch_decision>(event);
      if (decision.stop == plan::PrefetchStop::returned) {
        if (decision.prefetched_elems < 0 ||
            decision.prefetched_elems >= static_cast<std::int64_t>(store.tables().params.size()))
          continue;
        const ParamId param{static_cast<std::uint32_t>(decision.prefetched_elems)};
        if (read_to_return) before_release({VisitKind::use_external, module, param});
        before_release({VisitKind::return_param, module, param});
        read_to_return = false;
        continue;
      }
      if (ended && decision.module == gates[i].id) {
        read_to_return = true;
        continue;
      }
      if (own && decision.module == gates[i].id) {
        own = false;
        continue;
      }
      if (kind == VisitKind::pre_backward && decision.module == gates[i].id) {
        out.visits.push_back({VisitKind::pre_backward, module, plan::kNone<ParamId>});
        out.gates.push_back(gates[i]);
        continue;
      }
      auto use = external.lower_bound({decision.module, 0});
      for (std::uint32_t skip = taken[decision.module]++; skip > 0 && use != external.end(); --skip) ++use;
      if (use == external.end() || use->first != decision.module) continue;
      out.visits.push_back({VisitKind::use_external, ModuleId{decision.module}, ParamId{use->second}});
      out.gates.push_back(gates[i]);
    }
  }
  return out;
}

std::vector<ExternalUse> external_uses(const store::Store& store, std::uint32_t rank) {
  std::vector<ExternalUse> out;
  const auto first = micro_step_at(store, rank, store::Store::kBegin);
  if (!first) return out;
  for (const auto& [module, param] : external_uses_in(store, rank, first->front().at_ns, first->back().at_ns))
    out.push_back({ModuleId{module}, ParamId{param}});
  return out;
}

}  // namespace shardscope::analysis
