// Bytes of model states of one rank by memory pool, exactly: computed with the same decisions (ownership, P6,
// P8, S1) as the engine's, so that a measured peak can be broken down without a remainder.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// The properties of a run that the placement of its states depends on.
struct StateInput {
  std::vector<std::int64_t> param_elems;  ///< by ParamId
  std::vector<bool> trainable;            ///< by ParamId
  std::vector<std::uint32_t> groups;      ///< parameter groups, by ParamId; empty: one
  std::uint32_t world = 1;
  StateBytes bytes;
};

struct PlacedStates {
  /// By StatePool. Each field is one buffer (parameters of stage 3 with the frozen ones), those of the pool
  /// nvme apart: there a shard, or a state of a tile, has whole blocks of kSwapBlockBytes of its own.
  std::array<ModelStates, kStatePools> pools{};
  std::int64_t pieces = 0;  ///< owned parameters, second copy on the device: S1 with several communications
  /// hpZ, on the device, with a copy of every parameter: an upper bound. A copy is made at a release, so a
  /// persistent parameter that is never released has none.
  std::int64_t secondary = 0;
  std::vector<std::int64_t> secondary_shards;  ///< by ParamId, the terms of `secondary`; empty without hpZ
  std::int64_t nvme_blocks = 0;                ///< bytes of the pool nvme in whole blocks
  // zero_quantized_nontrainable_weights and compat hpz_quantized_copies, by StatePool, hpZ's copies with the
  // device's: of the bytes above
  std::array<std::int64_t, kStatePools> scales{};       ///< bytes of int8 shards beyond one byte per element
  std::array<std::int64_t, kStatePools> unquantized{};  ///< the same of shards and copies that are not int8
  /// Arguments of placed_expressions: shares by pool.
  std::array<double, kStatePools> param_share{};   ///< of the trainable parameters, stage 3; by StatePool
  std::array<double, kStatePools> frozen_share{};  ///< of the frozen ones, stage 3
  double offloaded_share = 0;  ///< share of the owned range whose states are not on the device
};

/// hpZ: secondary copies of F frozen elements, which the expression of GroupedStates does not count; int8
/// where the shards are (frozen_bytes).
struct FrozenSecondary {
  double bytes = 0;  ///< of one rank, per element; 0 without hpZ
  std::string text;  ///< "2F/8 (hpZ)", empty without hpZ
};
[[nodiscard]] FrozenSecondary frozen_secondary(const ZeroConfig& zero, const StateBytes& bytes);

/// Throws std::invalid_argument on invalid sizes, world or settings.
[[nodiscard]] PlacedStates placed_states(const ZeroConfig& zero, const StateInput& input);

}  // namespace shardscope::plan
