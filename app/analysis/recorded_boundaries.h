// The module boundaries that a recorded run was seen to pass, as visits that drive a scheduler, and its model
// as far as its tables say what a scheduler needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/store.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::analysis {

/// Modules and parameters as the scheduler needs them. A leaf module is the one with hooks above modules
/// without, lists aside, which have no parameters of their own.
[[nodiscard]] plan::ModelPlan model_of(const instrumentation::RunTables& tables);
/// Whether ids of modules and parameters are their places in the tables, as model_of() needs them.
[[nodiscard]] bool numbered_in_order(const instrumentation::RunTables& tables);
/// The boundary of a module that a gate is at; nothing for gates of other kinds.
[[nodiscard]] std::optional<plan::VisitKind> visit_kind(instrumentation::GateKind kind);

/// The gates of one micro-step that has been passed as a whole: its own, those of its module boundaries, and
/// the one that follows them.
using MicroStepGates = std::vector<store::Store::GateRow>;
/// The micro-step of `rank` at `at_ns` if it is over, else the last one before that is, else the first.
[[nodiscard]] std::optional<MicroStepGates> micro_step_at(const store::Store& store, std::uint32_t rank,
                                                          std::int64_t at_ns);

/// The boundaries of a micro-step as visits. Every pre-gate is followed by one decision for its module; a
/// further decision was for an attribute access in forward, and in backward for a parameter it had returned
/// (plan::ReturnedValues).
struct Boundaries {
  std::vector<plan::Visit> visits;
  std::vector<store::Store::GateRow> gates;  ///< by visit
};
[[nodiscard]] Boundaries boundaries_of(const store::Store& store, std::uint32_t rank,
                                       const MicroStepGates& gates);

/// A module that reads a parameter which is not its own.
struct ExternalUse {
  plan::ModuleId module{};
  plan::ParamId param{};
};
/// Those that the first micro-step of `rank` shows, where a parameter is gathered by attribute access; later
/// ones fetch it with the module.
[[nodiscard]] std::vector<ExternalUse> external_uses(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::analysis
