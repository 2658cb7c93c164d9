#include "runtime/plan/memory_model.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "runtime/plan/quantization.h"
#include "runtime/plan/rounding.h"
#include "runtime/plan/scheduler_compat.h"
#include "runtime/plan/shard_layout.h"

namespace shardscope::plan {
namespace {

void check_stage(std::uint32_t stage) {
  if (stage > 3) {
    throw std::invalid_argument("memory model: stage " + std::to_string(stage) + " is not one of 0 to 3");
  }
}

std::int64_t sum(const std::vector<std::int64_t>& elems) {
  return std::accumulate(elems.begin(), elems.end(), std::int64_t{0});
}

/// A factor of 1 is left out, as the papers write it: "S", not "1S".
std::string times_s(std::int64_t factor, const char* params = "S") {
  return factor == 1 ? params : std::to_string(factor) + params;
}

/// Parameters beyond the list are trained: callers leave it empty if nothing is frozen.
bool is_trainable(const std::vector<bool>& trainable, std::size_t param) {
  return param >= trainable.size() || trainable[param];
}

/// Selects the entries of the trainable parameters, or of the frozen ones.
template <typename T>
std::vector<T> chosen(const std::vector<T>& elems, const std::vector<bool>& trainable, bool trained) {
  std::vector<T> some;
  for (std::size_t i = 0; i < elems.size(); ++i) {
    if (is_trainable(trainable, i) == trained) some.push_back(elems[i]);
  }
  return some;
}

/// Opposite default: an empty list means that no parameter is persistent, so each is gathered in every pass.
bool is_persistent(const VolumeInput& input, std::size_t param) {
  return param < input.persistent.size() && input.persistent[param];
}

}  // namespace

std::string StateExpression::text(const char* params) const {
  std::string text;
  if (whole > 0) text = times_s(whole, params);
  if (whole > 0 && sharded > 0) text += " + ";
  if (sharded > 0) text += times_s(sharded, params) + "/n";
  return text;
}

// Four digits: a ratio of offload_optimizer gives factors such as 4.2, and a double printed whole would show
// its rounding.
std::string PoolExpression::text(const char* params) const {
  const auto factor = [params](double value) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.4g", value);
    return value == 1 ? std::string(params) : number.data() + std::string(params);
  };
  std::string text;
  if (whole > 0) text = factor(whole);
  if (whole > 0 && sharded > 0) text += " + ";
  if (sharded > 0) text += factor(sharded) + "/n";
  return text.empty() ? "0" : text;
}

// V1 to V4, in this order. Each stage moves one more kind of state from `whole` to `sharded`: optimizer
// states, then gradients, then parameters. The sum of both is bytes.all() in every row.
StateExpression state_expression(std::uint32_t stage, const StateBytes& bytes) {
  check_stage(stage);
  switch (stage) {
    case 0:
      return {bytes.all(), 0};
    case 1:
      return {bytes.param + bytes.gradient, bytes.optimizer()};
    case 2:
      return {bytes.param, bytes.gradient + bytes.optimizer()};
    default:
      return {0, bytes.all()};
  }
}

// No gradient and no optimizer states: a frozen element costs its weight alone, which stages 0 to 2 hold
// whole.
StateExpression frozen_expression(std::uint32_t stage, const StateBytes& bytes) {
  check_stage(stage);
  return stage < 3 ? StateExpression{bytes.param, 0} : StateExpression{0, bytes.param};
}

// Stages below 3 hold frozen weights in the storage type: C11a applies to stage 3 only.
StateBytes frozen_bytes(const StateBytes& bytes, const ZeroConfig& zero) noexcept {
  StateBytes frozen = bytes;
  if (zero.stage == 3 && zero.quantized_nontrainable_weights) frozen.param = 1;
  return frozen;
}

std::int64_t frozen_rest_bytes(const std::vector<std::int64_t>& param_elems,
                               const std::vector<bool>& trainable, const ZeroConfig& zero,
                               std::uint32_t ranks, std::int64_t element_bytes) {
  const std::vector<bool> quantized = quantized_shards(param_elems, trainable, zero, ranks, element_bytes);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < param_elems.size(); ++i) {
    if (trainable[i]) continue;
    const std::int64_t elems = partition_param(param_elems[i], ranks).shard_elems;
    // An int8 shard is followed by its scales in the same buffer; packed_shard() counts both. Each shard is
    // rounded up separately, since each begins at an aligned offset.
    const std::int64_t shard = quantized[i] ? packed_shard(elems).bytes() : elems * element_bytes;
    bytes += round_up(shard, kShardAlignmentBytes);
  }
  return bytes;
}

GroupedStates grouped_states(const StateExpression& states, const ZeroConfig& zero, std::int64_t param_bytes,
                             std::uint32_t world) {
  GroupedStates grouped;
  grouped.states = states;
  // Stages 0 to 2 have no groups: the settings below apply to stage 3 only (P16, P17).
  grouped.shard_ranks = world;
  grouped.text = states.text();
  if (zero.stage != 3) return grouped;
  // MiCS: a copy of the model is sharded over its group, not over the world, so S is divided by less.
  if (zero.mics_shard_size > 0) {
    grouped.shard_ranks = static_cast<double>(zero.mics_shard_size);
    grouped.text = times_s(states.sharded) + "/" + std::to_string(zero.mics_shard_size) + " (MiCS)";
  }
  // hpZ: a second copy of the parameters, sharded over fewer ranks. Gradients and optimizer states have none.
  if (zero.hpz_partition_size > 1) {
    const bool int8 = zero.compat.hpz_quantized_copies && zero.quantized_weights;  // scales are left out
    const std::int64_t element = int8 ? 1 : param_bytes;
    grouped.secondary_bytes = static_cast<double>(element);
    grouped.secondary_ranks = static_cast<double>(zero.hpz_partition_size);
    grouped.secondary_text = times_s(element) + "/" + std::to_string(zero.hpz_partition_size) + " (hpZ)";
    grouped.text += " + " + grouped.secondary_text;
  }
  return grouped;
}

StatePlacement state_placement(const ZeroConfig& zero) noexcept {
  const auto pool = [](OffloadDevice device, bool pinned) {
    switch (device) {
      case OffloadDevice::none:
        return StatePool::device;
      case OffloadDevice::nvme:
        return StatePool::nvme;
      // Only host memory can be pinned: pin_memory has no effect on the two other devices.
      case OffloadDevice::cpu:
        break;
    }
    return pinned ? StatePool::pinned : StatePool::host;
  };
  const OffloadOptimizerConfig& optimizer = zero.offload_optimizer;
  StatePlacement placement;
  placement.params = pool(zero.offload_param.device, zero.offload_param.pin_memory);
  placement.optimizer = pool(optimizer.device, optimizer.pin_memory);
  // Owned gradients are accumulated on the host even if states are on NVMe: the CPU optimizer reads them
  // there.
  if (optimizer.device != OffloadDevice::none) {
    placement.gradients = pool(OffloadDevice::cpu, optimizer.pin_memory);
    placement.ratio = optimizer.ratio;
  }
  return placement;
}

std::array<PoolExpression, kStatePools> placed_expressions(std::uint32_t stage, const StateBytes& bytes,
                                                           const StatePlacement& placement) {
  std::array<PoolExpression, kStatePools> pools{};
  const auto in = [&](StatePool pool) -> double& { return pools[static_cast<std::size_t>(pool)].sharded; };
  PoolExpression& device = pools[static_cast<std::size_t>(StatePool::device)];
  // In bytes per element of S. Only the device has `whole`: unsharded states are never offloaded.
  device.whole = static_cast<double>(state_expression(stage, bytes).whole);
  // Share of the owned range whose states are offloaded; the rest is updated on the device (P8).
  const double offloaded = placement.optimizer == StatePool::device ? 0 : placement.ratio;
  const auto moments = static_cast<double>(bytes.momentum + bytes.variance);
  // If parameters are offloaded, the device needs master weights of its own, so even an fp32 run pays the 4
  // bytes that StateBytes::master leaves out.
  const double kept_master =
      placement.params == StatePool::device ? static_cast<double>(bytes.master) : sizeof(float);
  // Stage 0 shards nothing that could be placed; its states are all in `whole`.
  if (stage == 0) return pools;
  // Only stage 3 has shards of parameters. Below, they are a part of `whole`.
  if (stage == 3) {
    std::array<double, kStatePools> shares{};
    shares[static_cast<std::size_t>(placement.params)] = 1;
    if (placement.param_share) shares = *placement.param_share;
    for (std::size_t i = 0; i < kStatePools; ++i) {
      pools[i].sharded += shares[i] * static_cast<double>(bytes.param);
    }
  }
  // In stage 1 gradients are in `whole`, and stay on the device when the owned ones are copied to the host.
  if (stage >= 2) device.sharded += (1 - offloaded) * static_cast<double>(bytes.gradient);
  device.sharded += (1 - offloaded) * (kept_master + moments);
  if (offloaded == 0) return pools;
  in(placement.gradients) += offloaded * static_cast<double>(bytes.gradient);
  // The CPU's master weights are fp32 whatever the storage type is.
  in(placement.optimizer) += offloaded * (sizeof(float) + moments);
  return pools;
}

ModelStates model_states(const std::vector<std::int64_t>& param_elems, std::uint32_t stage,
                         std::uint32_t world, const StateBytes& bytes, std::int64_t shard_alignment,
                         const std::vector<bool>& trainable, const std::vector<std::uint32_t>& groups) {
  check_stage(stage);
  const std::vector<std::int64_t> trained = chosen(param_elems, trainable, true);
  const std::vector<std::int64_t> frozen = chosen(param_elems, trainable, false);
  // Shard by shard: ceil(elems / world) of each parameter (P4), rounded up to the alignment in the buffer of
  // all of a rank's shards.
  const auto sharded = [&](const std::vector<std::int64_t>& params) {
    std::int64_t elems = 0;
    for (const std::int64_t param : params) {
      const std::int64_t shard = partition_param(param, world).shard_elems;
      elems += round_up(shard, shard_alignment);
    }
    return elems;
  };
  const std::int64_t elems = sum(trained);
  // Stage 0: every rank updates everything, so all three are S.
  std::int64_t resident = elems;  // parameters that stay on this rank
  std::int64_t owned = elems;     // elements that this rank updates, with padding
  std::int64_t gradients = elems;
  if (stage == 1 || stage == 2) {
    // The same planner as the engine's: padding is to a multiple of 2 * world per parameter group (S2).
    const FlatLayout layout =
        make_flat_layout(trained, world, GradientOrder::parameter_order, chosen(groups, trainable, true));
    resident = layout.flat_elems;
    owned = layout.shard_elems;
    gradients = stage == 1 ? layout.flat_elems : layout.shard_elems;
  } else if (stage == 3) {
    owned = sharded(trained);
    resident = owned;
    gradients = owned;
  }
  ModelStates states;
  states.param_owned = owned * bytes.param;
  // In stage 3 only the own shard is resident: resident and owned are equal and this is 0.
  states.param_rest = (resident - owned) * bytes.param;
  states.gradient = gradients * bytes.gradient;
  states.master = owned * bytes.master;
  states.momentum = owned * bytes.momentum;
  states.variance = owned * bytes.variance;
  states.frozen = (stage == 3 ? sharded(frozen) : sum(frozen)) * bytes.param;
  return states;
}

StepVolume step_volume(const std::vector<std::int64_t>& param_elems, const VolumeInput& input) {
  check_stage(input.stage);
  // Elements, not bytes, as in V1 to V4; the caller knows the types on the wire.
  const std::int64_t k = std::max<std::int64_t>(input.micro_steps, 1);
  const std::vector<std::int64_t> trained = chosen(param_elems, input.trainable, true);
  const std::int64_t elems = sum(trained);
  StepVolume volume;
  if (input.stage == 3) {
    std::int64_t gathered = 0;
    std::int64_t padded = 0;
    const bool frozen_again = SchedulerCompat(input.scheduler).partitions_persistent_at_update();
    for (std::size_t i = 0; i < param_elems.size(); ++i) {
      const ParamPartition part = partition_param(param_elems[i], input.world);
      // Elements of a gather or reduce-scatter of this parameter, with the padding of its last shard or
      // shards.
      const std::int64_t whole = part.shard_elems * static_cast<std::int64_t>(input.world);
      const bool learns = is_trainable(input.trainable, i);
      // A persistent parameter is gathered after the update that changed it. A frozen one does not change:
      // our scheduler keeps it gathered, at no cost per step. DeepSpeed's partitions it anyway.
      const std::int64_t once = learns || frozen_again ? 1 : 0;  // a step
      const std::int64_t gathers = is_persistent(input, i) ? once : k * input.gathers_per_micro_step;
      gathered += gathers * param_elems[i];
      padded += (gathers + (learns ? k : 0)) * whole;
    }
    volume.gather_elems = static_cast<double>(gathered);
    volume.reduce_elems = static_cast<double>(k * elems);
    volume.padded_elems = padded;
    // k * (gathers + 1 reduction), without the savings of persistent parameters, which depend on their sizes.
    volume.text = times_s(k * (input.gathers_per_micro_step + 1));
    if (trained.size() < param_elems.size()) {
      volume.text += " + " + times_s(k * input.gathers_per_micro_step, "F");
    }
    if (std::find(input.persistent.begin(), input.persistent.end(), true) != input.persistent.end()) {
      volume.text += " less what persistent parameters save";
    }
  } else {
    // An all-reduce moves as much as a reduce-scatter and an all-gather together.
    const bool all_reduce = input.stage == 0 || input.multi_rank_allreduce;
    // Stage 2 reduces in each micro-step, stages 0 and 1 once at the boundary (S15, V3).
    const std::int64_t reduces = input.stage == 2 ? k : 1;
    const std::int64_t per_reduce = all_reduce ? 2 : 1;
    volume.reduce_elems = static_cast<double>(reduces * per_reduce * elems);
    volume.padded_elems = reduces * per_reduce * elems;
    // The all-gather after the step moves whole partitions, padding included; the reduction before it only
    // real elements.
    if (input.stage > 0) {
      volume.gather_elems = static_cast<double>(elems);
      // Each parameter group is padded by itself (S2).
      volume.padded_elems += make_flat_layout(trained, input.world, GradientOrder::parameter_order,
                                              chosen(input.groups, input.trainable, true))
                                 .flat_elems;
    }
    const std::int64_t reduced = reduces * per_reduce;
    if (input.stage == 0) {
      volume.text = times_s(reduced);
    } else {
      // Written as two terms: the reductions are paid k times, the all-gather once.
      volume.text = k > 1 && input.stage == 2 ? times_s(reduced) + " + S" : times_s(reduced + 1);
    }
  }
  volume.elems = volume.gather_elems + volume.reduce_elems;
  return volume;
}

// Evaluated for one element: bytes / (bytes per element) is the number of elements that fit.
double largest_model(double memory_bytes, std::uint32_t stage, double ranks, double model_parallel,
                     const StateBytes& bytes) {
  return memory_bytes / state_expression(stage, bytes).bytes(1.0, ranks) * model_parallel;
}

// V8, with the papers' constants: 4 h^2 in attention and 8 h^2 in the two layers after it. Biases, norms and
// embeddings are left out, as in the papers.
double transformer_params(const TransformerShape& shape) noexcept {
  return 12 * shape.layers * shape.hidden * shape.hidden;
}
// 20 bytes for each of the 12 L h^2: 16-bit parameter and gradient, and fp32 parameter, gradient and two
// moments.
double transformer_state_bytes(const TransformerShape& shape) noexcept {
  return 240 * shape.layers * shape.hidden * shape.hidden;
}
// 16 bits per element of each checkpointed block input: one in `ci` blocks.
double activation_checkpoint_bytes(const TransformerShape& shape) noexcept {
  return 2 * shape.batch_per_node * shape.sequence * shape.hidden * shape.layers / shape.checkpoint_interval;
}
// The largest operator is the linear layer [h, 4h]: its 16-bit parameters and gradients, 2 * 2 * 4 h^2.
double model_state_working_memory(const TransformerShape& shape) noexcept {
  return 16 * shape.hidden * shape.hidden;
}
// Activations recomputed between two checkpoints, for the batch of one GPU, not of the node.
double activation_working_memory(const TransformerShape& shape) noexcept {
  return shape.batch_per_gpu * shape.sequence * shape.checkpoint_interval *
         (16 * shape.hidden + 2 * shape.heads * shape.sequence);
}

}  // namespace shardscope::plan
