#include "runtime/plan/stage_estimate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/plan/estimator.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/overlap.h"
#include "runtime/plan/placed_states.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/trained_layout.h"
#include "runtime/plan/visit_driver.h"
#include "runtime/plan/visit_order.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {
namespace {

/// Sizes that the bounds need.
struct Sizes {
  std::vector<std::int64_t> params;   ///< by ParamId; one entry when only the total is known
  std::vector<bool> trainable;        ///< by ParamId
  std::vector<std::uint32_t> groups;  ///< parameter groups, by ParamId; empty: one
  std::int64_t total = 0;             ///< with frozen parameters
  // Of those that are trained.
  std::int64_t trained = 0;
  std::int64_t trained_params = 0;
  std::int64_t largest_gradients = 0;  ///< of the module with the most
  std::int64_t largest_param = 0;
  std::int64_t largest_layer = 0;
};

void check_positive(const char* what, std::int64_t value) {
  if (value < 1) {
    throw std::invalid_argument(std::string("estimate: ") + what + " is " + std::to_string(value) +
                                "; it must be at least 1");
  }
}

Sizes sizes_of(const StageEstimateInput& input) {
  Sizes sizes;
  // A frozen parameter has no gradient: the bounds of buckets count the trained ones.
  if (input.model != nullptr) {
    for (const ParamPlan& param : input.model->params) {
      sizes.params.push_back(param.elems);
      sizes.trainable.push_back(param.trainable);
      if (!param.trainable) continue;
      ++sizes.trained_params;
      sizes.largest_param = std::max(sizes.largest_param, param.elems);
    }
    sizes.groups = groups_of_params(*input.model);
    sizes.total = input.model->elems;
    sizes.trained = trainable_elems(*input.model);
    sizes.largest_layer = input.model->largest_module_elems;
    // An upper bound: the largest module may contain frozen parameters.
    sizes.largest_gradients = std::min(sizes.trained, sizes.largest_layer);
  } else {
    check_positive("params", input.params);
    // As one parameter: padding, sub-groups and persistence are unknown then.
    sizes.params = {input.params};
    sizes.total = sizes.trained = input.params;
    sizes.trained_params = 1;
    sizes.largest_layer = std::min(input.largest_layer_params, input.params);
    sizes.largest_param = sizes.largest_gradients = sizes.largest_layer;
  }
  return sizes;
}

/// Maximum bytes of gradients that wait for their reduction or are in it.
///
/// This runtime: stages 0 and 1 reduce in place. Stages 2 and 3 hold the open bucket and, with overlap_comm,
/// the two before it (three where stage 3 makes the host wait as DeepSpeed does), and the module that
/// backward is writing. Where sums are kept on the host, have another type, or accumulate over micro-steps,
/// the owned pieces of these buckets are received in separate memory: at stage 2 a rank may own all of a
/// bucket, at stage 3 it owns its shard of each parameter. DeepSpeed: see BufferPolicy; stage 3 has one
/// buffer.
std::int64_t bucket_bytes(const StageEstimateInput& input, std::uint32_t stage, bool overlap,
                          bool offload_optimizer, std::int64_t owned, std::int64_t shard_ranks,
                          const Sizes& sizes) {
  const std::int64_t bucket = input.zero.reduce_bucket_size;
  // Elements (V7); stage 3 has one buffer in any case.
  const std::int64_t buffers = bucket * (stage == 3 ? 1 : bucket_buffers(overlap, true));
  if (input.buffers == BufferPolicy::deepspeed) {
    // DeepSpeed has buffers with contiguous_gradients only; stage 3 always has one.
    if (stage == 0 || (stage < 3 && !input.zero.contiguous_gradients)) return 0;
    return buffers * input.bytes.param;
  }
  ZeroConfig zero = input.zero;
  // The configured stage may differ: the calls below are about this row.
  zero.stage = stage;
  const bool buffered = buckets_are_buffers(zero);
  if (buffered && stage == 1) return buffers * input.bytes.gradient;  // whole gradients are states
  // Reduced in place, in the flat buffer counted by model_states().
  if (stage < 2) return 0;
  // A bucket closes at its size, but a larger parameter is a bucket by itself (S8, P15). No bucket exceeds
  // the model.
  const std::int64_t one = std::min(sizes.trained, std::max(bucket, sizes.largest_param));
  const auto before = static_cast<std::int64_t>(outstanding_reductions(zero).value_or(0)) + 1;
  const std::int64_t reducing = std::min(sizes.trained, one * (overlap ? 1 + before : 1));
  std::int64_t arriving = 0;
  if (offload_optimizer || input.zero.gradient_accumulation_steps > 1 ||
      input.bytes.gradient != input.bytes.param) {
    // A shard is ceil(elems / ranks): up to one element more than elems / ranks per parameter.
    arriving = std::min(owned, stage == 3 ? reducing / shard_ranks + sizes.trained_params : reducing);
  }
  if (buffered) {
    // An extra-large gradient goes into no buffer and is reduced from where backward wrote it.
    const std::int64_t larger = sizes.largest_param > bucket ? sizes.largest_param : 0;
    return (buffers + std::min(sizes.trained, sizes.largest_gradients + larger)) * input.bytes.param +
           arriving * input.bytes.gradient;
  }
  return std::min(sizes.trained, reducing + sizes.largest_gradients) * input.bytes.param +
         arriving * input.bytes.gradient;
}

/// Without the model: the scheduler stays within the live limit, except for the running layer.
std::int64_t gathered_bound_elems(const ZeroConfig& zero, const Sizes& sizes) {
  return std::min(sizes.total, zero.max_live_parameters + sizes.largest_layer);
}

/// The settings of a row.
ZeroConfig settings_of(const ZeroConfig& configured, const StageEstimate& row) {
  ZeroConfig zero = configured;
  zero.stage = row.stage;
  zero.offload_optimizer.device = row.offload_optimizer ? OffloadDevice::cpu : OffloadDevice::none;
  // `ratio` is a key of stage 3 (O2); below, the whole owned range is offloaded.
  if (row.stage < 3) zero.offload_optimizer.ratio = 1;
  zero.offload_param.device = row.offload_param ? OffloadDevice::cpu : OffloadDevice::none;
  return zero;
}

/// Share of the owned range that is offloaded with the optimizer: that of the sub-groups which the CPU
/// updates, if they are known.
double offloaded_share(const StageEstimateInput& input, const ZeroConfig& zero, std::uint32_t shard_ranks) {
  const double ratio = zero.offload_optimizer.ratio;
  // Without a model sub-groups are unknown: the ratio itself, not rounded to whole sub-groups.
  if (input.model == nullptr || zero.stage < 3 || ratio == 1) return ratio;
  const ShardLayout layout =
      make_shard_layout(*input.model, shard_ranks, kShardAlignmentBytes / input.bytes.param);
  if (layout.trainable_elems == 0) return ratio;
  const std::int64_t kept =
      first_offloaded_elem(zero.offload_optimizer, make_sub_groups(layout, zero.sub_group_size));
  // By elements and not by sub-groups: the last one may be shorter (P8).
  return 1 - static_cast<double>(kept) / static_cast<double>(layout.trainable_elems);
}

/// Elements of gradients that the device casts to fp32 at a time: those of the largest sub-group it updates.
std::int64_t copied_elems(const StageEstimateInput& input, const ZeroConfig& zero, std::int64_t owned,
                          std::uint32_t shard_ranks) {
  if (zero.stage < 3 || input.model == nullptr) {
    const bool moved = zero.offload_optimizer.device != OffloadDevice::none;
    const std::int64_t kept =
        moved ? static_cast<std::int64_t>((1 - zero.offload_optimizer.ratio) * static_cast<double>(owned))
              : owned;
    // Stages 1 and 2 have one sub-group for a rank; stage 3 casts one sub-group at a time.
    return zero.stage < 3 ? kept : std::min(kept, zero.sub_group_size);
  }
  const ShardLayout layout =
      make_shard_layout(*input.model, shard_ranks, kShardAlignmentBytes / input.bytes.param);
  const std::vector<Range> groups = make_sub_groups(layout, zero.sub_group_size);
  const std::uint32_t first = first_offloaded_group(zero.offload_optimizer, groups.size());
  std::int64_t largest = 0;
  for (std::uint32_t i = 0; i < first; ++i) largest = std::max(largest, groups[i].size());
  return largest;
}

/// Exact for whole factors.
std::int64_t bytes_of(double factor, std::int64_t elems) {
  // A product of doubles would be rounded beyond 2^53 bytes.
  if (factor == std::floor(factor)) return static_cast<std::int64_t>(factor) * elems;
  return std::llround(factor * static_cast<double>(elems));
}

/// hpZ: the secondary copies of one rank; those of shards that are stored as int8 are int8 too.
std::int64_t secondary_bytes(const Sizes& sizes, const ZeroConfig& zero, std::uint32_t ranks,
                             std::int64_t param_bytes) {
  if (zero.stage != 3 || zero.hpz_partition_size < 2) return 0;
  const auto group = static_cast<std::uint32_t>(zero.hpz_partition_size);
  std::vector<bool> quantized(sizes.params.size(), false);
  // Without a model no parameter is known to be frozen, and no shard is int8.
  if (!sizes.trainable.empty()) {
    quantized = quantized_copies(sizes.params, sizes.trainable, zero, ranks, param_bytes);
  }
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < sizes.params.size(); ++i) {
    bytes += quantized[i] ? packed_secondary(sizes.params[i], ranks, group).bytes()
                          : secondary_elems(sizes.params[i], ranks, group) * param_bytes;
  }
  return bytes;
}

/// Stage 1 in its first layout (S1): applies its padding. Returns the bytes of the contiguous second copy of
/// the owned parameters, needed where several communications leave them in pieces.
std::int64_t apply_legacy_layout(const StageEstimateInput& input, const ZeroConfig& zero, const Sizes& sizes,
                                 std::uint32_t ranks, std::int64_t& owned, std::int64_t& whole) {
  const FlatLayout layout = trained_layout({sizes.params, sizes.trainable, sizes.groups}, ranks, zero);
  owned = layout.shard_elems;
  whole = layout.flat_elems;
  return layout.groups_in_pieces() ? owned * input.bytes.param : 0;
}

StageEstimate estimate_stage(const StageEstimateInput& input, const Sizes& sizes, std::uint32_t stage,
                             bool offload_optimizer, bool offload_param) {
  const std::int64_t world = input.gpus_per_node * input.nodes;
  const auto ranks = static_cast<std::uint32_t>(world);
  StageEstimate row;
  row.stage = stage;
  row.offload_optimizer = offload_optimizer;
  row.offload_param = offload_param;
  // Stage and devices of the row, everything else as configured.
  ZeroConfig zero = settings_of(input.zero, row);
  const std::uint32_t shard_ranks = shard_world(zero, ranks);
  StatePlacement placement = state_placement(zero);
  if (offload_optimizer) placement.ratio = offloaded_share(input, zero, shard_ranks);
  const auto pools = placed_expressions(stage, input.bytes, placement);
  const auto in = [&](StatePool pool) -> const PoolExpression& {
    return pools[static_cast<std::size_t>(pool)];
  };
  row.device_expression = in(StatePool::device);
  // Nothing is unsharded on the host: it holds a part of the rank's owned range only.
  row.host_expression.sharded = in(StatePool::host).sharded + in(StatePool::pinned).sharded;

  // Elements that a rank updates, with padding: bytes of a sharded state per byte of an element. From numbers
  // alone there are no shards to align.
  const std::int64_t alignment = input.model != nullptr ? kShardAlignmentBytes / input.bytes.param : 1;
  ModelStates exact =
      model_states(sizes.params, stage, shard_ranks, input.bytes, alignment, sizes.trainable, sizes.groups);
  if (stage == 3 && exact.frozen > 0 && zero.quantized_nontrainable_weights) {
    exact.frozen = frozen_rest_bytes(sizes.params, sizes.trainable, zero, shard_ranks, input.bytes.param);
  }
  // Computed from bytes: the division is exact, since model_states() multiplied by the same number.
  std::int64_t owned = exact.param_owned / input.bytes.param;
  std::int64_t whole = (exact.param_owned + exact.param_rest) / input.bytes.param;
  const std::int64_t pieces =
      uses_legacy_layout(zero) ? apply_legacy_layout(input, zero, sizes, ranks, owned, whole) : 0;
  const GroupedStates grouped =
      grouped_states(state_expression(stage, input.bytes), zero, input.bytes.param, ranks);
  // Without offload the text of groups is more specific than the pool's: it names MiCS and hpZ.
  row.device_text = row.device_expression.text();
  if (!offload_optimizer) {
    row.device_text = grouped.text;
  } else if (!grouped.secondary_text.empty()) {
    row.device_text = (row.device_text == "0" ? "" : row.device_text + " + ") + grouped.secondary_text;
  }
  const std::string frozen_copies = frozen_secondary(zero, input.bytes).text;
  if (exact.frozen > 0 && !frozen_copies.empty()) row.device_text += " + " + frozen_copies;
  if (pieces > 0) row.device_text += " + " + StateExpression{0, input.bytes.param}.text() + " (pieces)";
  // `whole` and `owned` include padding: this is the expression with exact counts in place of S and S/n.
  row.model_states = bytes_of(row.device_expression.whole, whole) +
                     bytes_of(row.device_expression.sharded, owned) + pieces +
                     secondary_bytes(sizes, zero, ranks, input.bytes.param);
  // Frozen weights follow the trained ones in stage 3; below, every rank computes with its own whole copy of
  // them.
  const StatePool frozen_pool = stage == 3 ? state_placement(zero).params : StatePool::device;
  const std::int64_t frozen_on_host = frozen_pool == StatePool::device ? 0 : exact.frozen;
  if (exact.frozen > 0) row.frozen = frozen_expression(stage, frozen_bytes(input.bytes, zero));
  row.frozen_on_host = frozen_on_host > 0;
  row.model_states += exact.frozen - frozen_on_host;
  // Per node: one rank for each of its GPUs.
  row.host_states = (bytes_of(row.host_expression.sharded, owned) + frozen_on_host) * input.gpus_per_node;
  row.pinned = (bytes_of(in(StatePool::pinned).sharded, owned) +
                (frozen_pool == StatePool::pinned ? frozen_on_host : 0)) *
               input.gpus_per_node;
  row.buckets = bucket_bytes(input, stage, zero.overlap(), offload_optimizer, owned, shard_ranks, sizes);
  // DeepSpeed's buffers are counted elsewhere.
  if (copies_gradients_at_step(zero) && input.buffers == BufferPolicy::shardscope) {
    row.copies = static_cast<std::int64_t>(sizeof(float)) * copied_elems(input, zero, owned, shard_ranks);
  }
  // A single rank holds every parameter whole already, unless it is int8.
  const bool packed = exact.frozen > 0 && zero.quantized_nontrainable_weights;
  if (stage == 3 && (shard_ranks > 1 || offload_param || packed)) {
    if (input.model != nullptr) {
      // The buffer policy also selects the scheduler: the two gather different sets of parameters.
      if (input.buffers == BufferPolicy::deepspeed) zero.compat.scheduler = Compat::deepspeed;
      row.gathered = gathered_peak_bytes(*input.model, zero, shard_ranks, input.bytes.param);
    } else {
      row.gathered = gathered_bound_elems(zero, sizes) * input.bytes.param;
    }
  }
  return row;
}

void find_transformer(const std::vector<NodeSpec>& nodes, TransformerShape& shape) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == NodeKind::attention) {
      // Heads and width are those of the last layer: all layers are assumed equal.
      shape.layers += 1;
      shape.heads = static_cast<double>(nodes[i].heads);
      // Its input [B,T,3C] is the output of the linear layer before it.
      if (i > 0 && nodes[i - 1].kind == NodeKind::linear)
        shape.hidden = static_cast<double>(nodes[i - 1].out) / 3;
    }
    find_transformer(nodes[i].children, shape);
  }
}

}  // namespace

std::int64_t gathered_peak_bytes(const ModelPlan& model, const ZeroConfig& zero, std::uint32_t world,
                                 std::int64_t param_bytes) {
  FetchScheduler scheduler(model, world, make_scheduler_config(zero));
  VisitDriver driver(scheduler);
  std::vector<std::int64_t> bytes;
  for (const ParamPlan& param : model.params) {
    // Full size, with the padding that a gather writes.
    bytes.push_back(partition_param(param.elems, world).shard_elems * world * param_bytes);
  }
  std::int64_t peak = 0;
  const auto measure = [&] {
    std::int64_t now = 0;
    for (const ParamPlan& param : model.params) {
      // In-flight parameters count: their memory is allocated when the gather is issued.
      if (scheduler.status(param.id) != ParamStatus::not_available) now += bytes[raw(param.id)];
    }
    peak = std::max(peak, now);
  };
  // The first records, the second is the first that prefetches, and the third begins with the parameters left
  // gathered by the step of a complete trace.
  constexpr std::int64_t kIterations = 3;
  for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
    (void)driver.begin_iteration();
    VisitOptions options;
    options.iteration = iteration;
    // The hooks follow the scheduler: DeepSpeed's fetches more often and reports fewer ends.
    options.deepspeed_hooks = zero.compat.scheduler != Compat::shardscope;
    for (const Visit& visit : visit_order(model, options)) {
      (void)driver.take(visit);
      measure();
    }
    (void)driver.end_step();
    measure();
  }
  return peak;
}

std::vector<StageEstimate> estimate_stages(const StageEstimateInput& input) {
  check_positive("gpus per node", input.gpus_per_node);
  check_positive("nodes", input.nodes);
  const Sizes sizes = sizes_of(input);
  std::vector<StageEstimate> rows;
  for (std::uint32_t stage = 0; stage <= 3; ++stage) {
    rows.push_back(estimate_stage(input, sizes, stage, false, false));
    // MiCS rejects offload.
    if (stage == 3 && input.zero.mics_shard_size > 0) continue;
    if (stage > 0) rows.push_back(estimate_stage(input, sizes, stage, true, false));
    if (stage == 3) rows.push_back(estimate_stage(input, sizes, stage, true, true));
  }
  return rows;
}

std::optional<TransformerShape> transformer_shape(const ModelSpec& spec) {
  TransformerShape shape;
  find_transformer(spec.root.children, shape);
  // Width 0: the attention's input comes from no linear layer, so its width is unknown.
  if (shape.layers == 0 || shape.hidden == 0) return std::nullopt;
  shape.sequence = static_cast<double>(spec.context);
  return shape;
}

ActivationEstimate estimate_activations(const TransformerShape& shape) {
  ActivationEstimate activations;
  activations.per_layer = activation_bytes(shape.sequence, shape.heads, shape.hidden, shape.batch_per_gpu);
  activations.kept = activations.per_layer * shape.layers;
  // activation_checkpoint_bytes() uses the batch of a node; given that of one GPU it counts one GPU.
  TransformerShape gpu = shape;
  gpu.batch_per_node = shape.batch_per_gpu;
  activations.checkpointed = activation_checkpoint_bytes(gpu) + activation_working_memory(gpu);
  // Negated so that NaN is rejected too: callers convert these to whole bytes.
  if (!(activations.kept < 0x1p63) || !(activations.checkpointed < 0x1p63)) {
    throw std::invalid_argument(
        "estimate: the activations' bytes are beyond what is counted here (8 EiB); give smaller sizes");
  }
  return activations;
}

}  // namespace shardscope::plan
