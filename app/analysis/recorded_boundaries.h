// Module boundaries that a recorded run passed, as visits that drive a scheduler, and its model as far as the
// tables contain what a scheduler needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/store.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::analysis {

/// Modules and parameters for the scheduler. A leaf module is one with hooks whose children have none; lists
/// are ignored, since they have no parameters of their own.
[[nodiscard]] plan::ModelPlan model_of(const instrumentation::RunTables& tables);
/// Whether ids of modules and parameters equal their indices in the tables, as model_of() requires.
[[nodiscard]] bool numbered_in_order(const instrumentation::RunTables& tables);
/// The module boundary of a gate; nullopt for gates of other kinds.
[[nodiscard]] std::optional<plan::VisitKind> visit_kind(instrumentation::GateKind kind);

/// The gates of one completed micro-step: its own, those of its module boundaries, and the next one after
/// them.
using MicroStepGates = std::vector<store::Store::GateRow>;
/// The micro-step of `rank` at `at_ns` if it is complete, else the last complete one before, else the first.
[[nodiscard]] std::optional<MicroStepGates> micro_step_at(const store::Store& store, std::uint32_t rank,
                                                          std::int64_t at_ns);

/// The boundaries of a micro-step as visits. Every pre-gate is followed by one decision for its module; a
/// further decision is, in forward, for an attribute access, and in backward for a returned parameter
/// (plan::ReturnedValues).
struct Boundaries {
  std::vector<plan::Visit> visits;
  std::vector<store::Store::GateRow> gates;  ///< by visit
};
[[nodiscard]] Boundaries boundaries_of(const store::Store& store, std::uint32_t rank,
                                       const MicroStepGates& gates);

/// A module that reads a parameter of another module.
struct ExternalUse {
  plan::ModuleId module{};
  plan::ParamId param{};
};
/// External uses in the first micro-step of `rank`, where the parameter is gathered by attribute access;
/// later micro-steps fetch it with the module.
[[nodiscard]] std::vector<ExternalUse> external_uses(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::analysis
