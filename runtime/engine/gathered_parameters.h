// zero.GatheredParameters (docs/zero.md P14): parameters gathered on every rank between two steps, to read or
// change them; and DeepSpeed's all_gather(), partition() and item() of one parameter.
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
  /// All arguments must outlive this object.
  GatheredParameters(const execution::Context& context, const plan::Ownership& ownership, HeldStates& state);

  /// See Engine::with_gathered. Returns whether master weights may have changed and have to be published.
  [[nodiscard]] bool with(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                          const Engine::UseGathered& use);
  /// See Engine::all_gather, partition and item. partition() returns what with() does.
  [[nodiscard]] std::span<float> gather(plan::ParamId param);
  [[nodiscard]] bool partition(plan::ParamId param, bool updated);
  [[nodiscard]] float item(plan::ParamId param);
  /// Throws std::logic_error naming a parameter that gather() left whole, if any.
  void check_partitioned() const;

 private:
  /// A gathered parameter with its memory.
  struct Whole {
    device::Buffer memory;  ///< [elems] fp32, pinned
    Engine::Gathered values;
  };
  [[nodiscard]] Whole make_whole(plan::ParamId param);
  void give_back(plan::ParamId param);
  /// Throws for unknown or already gathered parameters, before anything has changed.
  void check(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier) const;
  void emit_status(plan::ParamId param, bool gathered) const;
  void take_changes(const Engine::Gathered& param, std::uint32_t modifier);

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  HeldStates& state_;
  std::vector<bool> gathered_;              ///< by ParamId
  std::map<plan::ParamId, Whole> by_call_;  ///< those gathered by gather()
  std::vector<bool> resident_;              ///< by ParamId: always whole on every rank
};

}  // namespace shardscope::engine
