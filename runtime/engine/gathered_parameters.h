// zero.GatheredParameters (docs/zero.md P14): parameters made whole on every rank between two steps, to
// look at or to change.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/held_states.h"
#include "runtime/execution/context.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

class GatheredParameters {
 public:
  /// Everything named outlives this.
  GatheredParameters(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state);

  /// See Engine::with_gathered. Returns whether master weights changed: they have to be published then.
  [[nodiscard]] bool with(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                          const Engine::UseGathered& use);

 private:
  /// Refuses what is unknown or gathered already; nothing has changed then.
  void check(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier) const;
  void emit_status(plan::ParamId param, bool gathered) const;
  void take_changes(const Engine::Gathered& param, std::uint32_t modifier);

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  HeldStates& state_;
  std::vector<bool> gathered_;  ///< by ParamId
  std::vector<bool> resident_;  ///< by ParamId: whole on every rank anyway
};

}  // namespace shardscope::engine
