// zero.GatheredParameters (docs/zero.md P14): parameters made whole on every rank between two steps, to
// look at or to change; and single calls of all_gather(), partition() and item() of a parameter.
#pragma once

#include <map>
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
  /// See Engine::all_gather, partition and item. partition() returns what with() does.
  [[nodiscard]] std::span<float> gather(plan::ParamId param);
  [[nodiscard]] bool partition(plan::ParamId param, bool updated);
  [[nodiscard]] float item(plan::ParamId param);
  /// Throws std::logic_error that names a parameter which gather() made whole.
  void check_partitioned() const;

 private:
  /// Whole, in memory of its own.
  struct Whole {
    device::Buffer memory;  ///< [elems] fp32, pinned
    Engine::Gathered values;
  };
  [[nodiscard]] Whole make_whole(plan::ParamId param);
  void give_back(plan::ParamId param);
  /// Refuses what is unknown or gathered already; nothing has changed then.
  void check(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier) const;
  void emit_status(plan::ParamId param, bool gathered) const;
  void take_changes(const Engine::Gathered& param, std::uint32_t modifier);

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  HeldStates& state_;
  std::vector<bool> gathered_;              ///< by ParamId
  std::map<plan::ParamId, Whole> by_call_;  ///< of them, those of gather()
  std::vector<bool> resident_;              ///< by ParamId: whole on every rank anyway
};

}  // namespace shardscope::engine
