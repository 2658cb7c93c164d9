// Closed forms: bytes of model states per rank and elements communicated per step, for each stage, and the
// large-scale figures of the ZeRO and ZeRO-Infinity papers from the same expressions (docs/zero.md V1-V8).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/partition.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Bytes per element of each model state.
struct StateBytes {
  std::int64_t param = 2;
  std::int64_t gradient = 2;
  std::int64_t master = 4;  ///< 0 where parameters are fp32 themselves
  std::int64_t momentum = 4;
  std::int64_t variance = 4;
  [[nodiscard]] constexpr std::int64_t optimizer() const noexcept { return master + momentum + variance; }
  [[nodiscard]] constexpr std::int64_t all() const noexcept { return param + gradient + optimizer(); }
};
inline constexpr StateBytes kMixedPrecision{};     ///< bf16 or fp16 with Adam: 16 bytes
inline constexpr StateBytes kFp32{4, 4, 0, 4, 4};  ///< fp32 with Adam: 16 bytes

/// bytes = whole * S + sharded * S / n.
struct StateExpression {
  std::int64_t whole = 0;
  std::int64_t sharded = 0;
  [[nodiscard]] double bytes(double params, double ranks) const noexcept {
    return static_cast<double>(whole) * params + static_cast<double>(sharded) * params / ranks;
  }
  /// "4S + 12S/n"; "16S"; "16S/n". `params` replaces the letter S.
  [[nodiscard]] std::string text(const char* params = "S") const;
};
/// V1-V4. Throws std::invalid_argument on a stage above 3.
[[nodiscard]] StateExpression state_expression(std::uint32_t stage, const StateBytes& bytes);
/// States of F elements of frozen parameters, which S does not count: their weights, sharded in stage 3.
[[nodiscard]] StateExpression frozen_expression(std::uint32_t stage, const StateBytes& bytes);

/// `bytes` for frozen_expression: one byte per frozen element under zero_quantized_nontrainable_weights
/// (int8). Scales, and shards that keep the storage type, are left out.
[[nodiscard]] StateBytes frozen_bytes(const StateBytes& bytes, const ZeroConfig& zero) noexcept;
/// Stage 3, exactly: bytes of frozen weights stored on one of `ranks`, each shard at a multiple of
/// kShardAlignmentBytes. `param_elems` and `trainable` by ParamId.
[[nodiscard]] std::int64_t frozen_rest_bytes(const std::vector<std::int64_t>& param_elems,
                                             const std::vector<bool>& trainable, const ZeroConfig& zero,
                                             std::uint32_t ranks, std::int64_t element_bytes);

/// The expression where parameters are not sharded over all ranks alike: MiCS shards over a group, hpZ adds a
/// copy of the parameters spread over one.
struct GroupedStates {
  StateExpression states;
  double shard_ranks = 1;      ///< n, or the size of MiCS' groups
  double secondary_bytes = 0;  ///< per element, 0 without hpZ
  double secondary_ranks = 1;
  std::string text;            ///< "16S/n", "16S/4 (MiCS)", "16S/n + 2S/8 (hpZ)"
  std::string secondary_text;  ///< the secondary part alone: "2S/8 (hpZ)"; empty without hpZ
  [[nodiscard]] double bytes(double params) const noexcept {
    return states.bytes(params, shard_ranks) + secondary_bytes * params / secondary_ranks;
  }
};
[[nodiscard]] GroupedStates grouped_states(const StateExpression& states, const ZeroConfig& zero,
                                           std::int64_t param_bytes, std::uint32_t world);

/// Memory that model states may be kept in; the order of instrumentation::MemoryPool.
enum class StatePool : std::uint8_t { device, host, pinned, nvme };
inline constexpr std::size_t kStatePools = 4;

/// The expression of one memory pool; offload_optimizer.ratio can make its factors fractional.
struct PoolExpression {
  double whole = 0;
  double sharded = 0;
  [[nodiscard]] double bytes(double params, double ranks) const noexcept {
    return whole * params + sharded * params / ranks;
  }
  /// As above, factors to four digits: "4.2S/n"; "0".
  [[nodiscard]] std::string text(const char* params = "S") const;
};

/// Where offloading puts model states.
struct StatePlacement {
  StatePool params = StatePool::device;     ///< of the shards, stage 3
  StatePool optimizer = StatePool::device;  ///< of master weights, momentum and variance
  StatePool gradients =
      StatePool::device;  ///< of the owned gradients: host memory where the optimizer is offloaded
  double ratio = 1;       ///< share of the owned range whose states are offloaded
  /// Share of the parameters by StatePool; nullopt: all in the pool `params`. P6 leaves small shards on the
  /// host or the device (plan::placed_states).
  std::optional<std::array<double, kStatePools>> param_share{};
};
[[nodiscard]] StatePlacement state_placement(const ZeroConfig& zero) noexcept;

/// The expression of each pool, by StatePool. An offloaded optimizer keeps fp32 master weights whatever the
/// storage type, so does one on the device whose parameters are offloaded; gradients of stage 1 stay whole on
/// the device beside the owned copy on the host. Without `param_share`, small shards, which P6 leaves on the
/// device or the host, are counted in the pool of the large ones, and a `ratio` from the configuration is not
/// rounded to whole sub-groups. Throws as state_expression does.
[[nodiscard]] std::array<PoolExpression, kStatePools> placed_expressions(std::uint32_t stage,
                                                                         const StateBytes& bytes,
                                                                         const StatePlacement& placement);

/// Model states of one rank, exactly, padding included.
struct ModelStates {
  std::int64_t param_owned = 0;
  std::int64_t param_rest = 0;  ///< resident elements that other ranks own (stages 0 to 2)
  std::int64_t gradient = 0;
  std::int64_t master = 0;
  std::int64_t momentum = 0;
  std::int64_t variance = 0;
  std::int64_t frozen = 0;  ///< weights that are not trained
  [[nodiscard]] std::int64_t total() const noexcept {
    return param_owned + param_rest + gradient + master + momentum + variance + frozen;
  }
};
/// `param_elems` by ParamId. Stage 2 keeps only owned gradients, as this runtime does (V6 is the exception
/// elsewhere). `shard_alignment`: stage 3, see make_shard_layout. `trainable` by ParamId; empty: all are.
/// `groups`: parameter groups, by ParamId; empty: one. Throws std::invalid_argument on a stage above 3.
[[nodiscard]] ModelStates model_states(const std::vector<std::int64_t>& param_elems, std::uint32_t stage,
                                       std::uint32_t world, const StateBytes& bytes,
                                       std::int64_t shard_alignment = 1,
                                       const std::vector<bool>& trainable = {},
                                       const std::vector<std::uint32_t>& groups = {});

/// Elements one rank communicates in an optimizer step, as the ZeRO paper counts: an all-reduce 2, the others
/// 1 per element of the whole.
struct StepVolume {
  double elems = 0;  ///< without padding, and without the reductions of norm and loss
  double gather_elems = 0;
  double reduce_elems = 0;
  std::int64_t padded_elems = 0;  ///< with the padding that is communicated
  std::string text;               ///< "2S", "3S", with accumulation "4S + S"; F: frozen parameters
};
struct VolumeInput {
  std::uint32_t stage = 0;
  std::uint32_t world = 1;
  std::int64_t micro_steps = 1;             ///< gradient accumulation
  bool multi_rank_allreduce = false;        ///< compat: stages 1 and 2 cost 3S
  std::int64_t gathers_per_micro_step = 2;  ///< stage 3: forward and backward; 1 if kept between them
  std::vector<bool> persistent;             ///< stage 3, by ParamId: gathered once a step; empty: none
  /// By ParamId; empty: all are. Frozen ones are gathered in stage 3; persistent ones of them never again, or
  /// after each step under DeepSpeed's scheduler.
  std::vector<bool> trainable{};
  Compat scheduler = Compat::shardscope;  ///< stage 3: compat.scheduler
  std::vector<std::uint32_t> groups{};    ///< stages 1 and 2: parameter groups, by ParamId; empty: one
};
[[nodiscard]] StepVolume step_volume(const std::vector<std::int64_t>& param_elems, const VolumeInput& input);

/// The largest model of `stage` whose states fit (ZeRO Table 2, theory): bytes / (bytes per parameter), times
/// the degree of model parallelism.
[[nodiscard]] double largest_model(double memory_bytes, std::uint32_t stage, double ranks,
                                   double model_parallel, const StateBytes& bytes = kMixedPrecision);

/// ZeRO-Infinity's model of a transformer's memory.
struct TransformerShape {
  double layers = 0;
  double hidden = 0;
  double heads = 0;
  double sequence = 1024;
  double batch_per_gpu = 4;
  double batch_per_node = 32;
  double checkpoint_interval = 1;  ///< ci: blocks between two activation checkpoints
};
[[nodiscard]] double transformer_params(const TransformerShape& shape) noexcept;           ///< 12 L h^2
[[nodiscard]] double transformer_state_bytes(const TransformerShape& shape) noexcept;      ///< 240 L h^2
[[nodiscard]] double activation_checkpoint_bytes(const TransformerShape& shape) noexcept;  ///< per node
[[nodiscard]] double model_state_working_memory(const TransformerShape& shape) noexcept;   ///< MSWM: 16 h^2
[[nodiscard]] double activation_working_memory(const TransformerShape& shape) noexcept;    ///< AWM, per GPU

}  // namespace shardscope::plan
