// Memory of a GPU and its host at each ZeRO stage, with the buffers and limits of a configuration: model
// states (exact), gradient buckets, gathered parameters. With a model they are computed by the engine's
// planners; from a parameter count alone they are bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Whose buffers are counted. This runtime reduces gradients where backward wrote them; DeepSpeed copies them
/// into buffers of reduce_bucket_size elements, two with overlap_comm (V7). So does this runtime under compat
/// gradient_buffers, in addition to whole gradients of a module and larger ones.
enum class BufferPolicy : std::uint8_t { shardscope, deepspeed };

struct StageEstimateInput {
  const ModelPlan* model = nullptr;       ///< not owned; null: only the two numbers are known
  std::int64_t params = 0;                ///< without model
  std::int64_t largest_layer_params = 0;  ///< without model; 0: unknown, bounds leave it out
  std::int64_t gpus_per_node = 1;
  std::int64_t nodes = 1;
  StateBytes bytes = kMixedPrecision;
  /// Sizes, limits, groups and layouts; stage and the device of offloading are those of each row.
  ZeroConfig zero;
  BufferPolicy buffers = BufferPolicy::shardscope;
};

struct StageEstimate {
  std::uint32_t stage = 0;
  bool offload_optimizer = false;
  bool offload_param = false;
  PoolExpression device_expression;  ///< model states of one GPU, sharded over all ranks alike
  /// The actual expression: "16S/4 (MiCS)", "16S/n + 2S/8 (hpZ)", "4S + 12S/n + 2S/n (pieces)".
  std::string device_text;
  PoolExpression host_expression;  ///< part of one rank that is in host memory instead, pinned or not
  StateExpression frozen;          ///< per element of frozen parameters, in addition; zero without any
  bool frozen_on_host = false;     ///< `frozen` is on the host, as the trained parameters are
  // Bytes of one GPU.
  std::int64_t model_states = 0;  ///< padding included
  std::int64_t buckets = 0;       ///< maximum of gradients between backward and their reduction
  std::int64_t gathered = 0;      ///< stage 3: peak of gathered parameters, or a bound without model
  std::int64_t copies = 0;        ///< fp32 gradients of the update (compat gradient_buffers)
  /// Buckets of stages 1 and 2 are freed when the update makes its copies, that of stage 3 stays.
  [[nodiscard]] std::int64_t device_total() const noexcept {
    return model_states + (stage == 3 ? buckets + copies : std::max(buckets, copies)) + gathered;
  }
  // Bytes of one node.
  std::int64_t host_states = 0;
  std::int64_t pinned = 0;  ///< the pinned part of host_states
};

/// Stages 0 to 3 without offload, 1 to 3 with the optimizer on the CPU (in stage 3 as much as `ratio` says,
/// by whole sub-groups where the model is known), 3 with parameters there too; stage by stage. With
/// mics_shard_size stage 3 has no offload, which MiCS refuses. States are placed as in this runtime
/// (placed_expressions); DeepSpeed's estimators count host memory differently (estimator.h, M6 and M12).
/// Throws std::invalid_argument on counts below 1 and groups that do not divide the ranks.
[[nodiscard]] std::vector<StageEstimate> estimate_stages(const StageEstimateInput& input);

/// Peak bytes of gathered stage-3 parameters over three iterations (record, complete, complete) of
/// FetchScheduler, padding of gathered shards included.
[[nodiscard]] std::int64_t gathered_peak_bytes(const ModelPlan& model, const ZeroConfig& zero,
                                               std::uint32_t world, std::int64_t param_bytes);

/// The transformer in a model, for its activations: attention layers, their width and heads, the longest
/// sequence. nullopt if it has no attention.
[[nodiscard]] std::optional<TransformerShape> transformer_shape(const ModelSpec& spec);

/// Activations of one micro-batch in 16 bits (M13 per layer): all layers kept, or inputs of every
/// `checkpoint_interval` layers and the layers in between recomputed. Bytes per GPU.
struct ActivationEstimate {
  double per_layer = 0;
  double kept = 0;
  double checkpointed = 0;
};
/// Reads `batch_per_gpu` and `checkpoint_interval` of the shape, not batch_per_node.
[[nodiscard]] ActivationEstimate estimate_activations(const TransformerShape& shape);

}  // namespace shardscope::plan
