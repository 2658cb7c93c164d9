#include "runtime/plan/zero_traffic.h"

#include "runtime/plan/partition.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/rounding.h"
#include "runtime/plan/scheduler_compat.h"
#include "runtime/plan/secondary_shards.h"

namespace shardscope::plan {
namespace {

/// Bytes of an fp32 scale, which counts as one element of its collective.
constexpr std::int64_t kScaleBytes = 4;

Traffic& at(ScopeTraffic& traffic, TrafficScope scope) { return traffic[static_cast<std::size_t>(scope)]; }

void add(ScopeTraffic& traffic, TrafficScope scope, std::int64_t elems, std::int64_t bytes) {
  at(traffic, scope).elems += elems;
  at(traffic, scope).bytes += bytes;
}

/// Adds up the traffic of one parameter at a time. `whole` is a rank's shard times the ranks that share it: a
/// collective moves equal parts, padding included.
class Counter {
 public:
  Counter(const ZeroConfig& zero, const TrafficInput& input)
      : zero_(zero),
        input_(input),
        ranks_(shard_world(zero, input.topology.world)),
        primary_(zero.mics_shard_size > 0 ? TrafficScope::shard : TrafficScope::world) {}

  void gather(ScopeTraffic& traffic, const TrafficParam& param, std::int64_t times) const {
    // The order of these branches is that of GatherPath::gather(): int8 parameters use neither the all-reduce
    // nor the hierarchical gather. Counters of a run are compared with these sums.
    const std::int64_t shard = partition_param(elems_of_shape(param.shape), ranks_).shard_elems;
    const std::int64_t whole = shard * ranks_;
    const Persistence persistence = param.persistent ? Persistence::persistent : Persistence::released;
    // Each rank sends its values and, in a second collective, one scale for each of its groups (P18).
    if (packed(param, shard) || quantizes_weight(zero_, ranks_, persistence)) {
      const std::int64_t scales = weight_groups(shard).groups * ranks_;
      add(traffic, primary_, times * (whole + scales), times * (whole + scales * kScaleBytes));
      // Shards are summed with zeros: an all-reduce counts twice its elements.
    } else if (zero_.use_all_reduce_for_fetch_params) {
      add(traffic, primary_, times * 2 * whole, times * 2 * whole * input_.param_bytes);
    } else if (gathers_hierarchically(zero_, input_.topology)) {
      // Between nodes a rank collects one chunk of every node, inside a node the chunks of its peers:
      // 1/ranks_per_node of the whole, then all of it (P16).
      const std::int64_t first = whole / input_.topology.ranks_per_node;
      add(traffic, TrafficScope::inter_node, times * first, times * first * input_.param_bytes);
      add(traffic, TrafficScope::intra_node, times * whole, times * whole * input_.param_bytes);
    } else {
      add(traffic, primary_, times * whole, times * whole * input_.param_bytes);
    }
  }

  void gather_secondary(ScopeTraffic& traffic, const TrafficParam& param, std::int64_t times) const {
    const auto group = static_cast<std::uint32_t>(zero_.hpz_partition_size);
    const std::int64_t elems = elems_of_shape(param.shape);
    // The copy holds the padding of all primary shards, so this is the same `whole` as of gather(), over a
    // smaller group.
    const std::int64_t whole = secondary_elems(elems, ranks_, group) * group;
    // The copy of a frozen parameter is int8 where the shards are, that of a trained one only with qwZ and
    // the switch hpz_quantized_copies.
    const bool rounded = packed(param, partition_param(elems, ranks_).shard_elems) ||
                         (!param.frozen && zero_.compat.hpz_quantized_copies &&
                          quantizes_weight(zero_, ranks_, persistence_of(param)));
    if (rounded) {
      // A copy has the groups of the shards it consists of: as many scales as all shards together.
      const std::int64_t scales = packed_secondary(elems, ranks_, group).scales() * group;
      add(traffic, TrafficScope::secondary, times * (whole + scales), times * (whole + scales * kScaleBytes));
      return;
    }
    add(traffic, TrafficScope::secondary, times * whole, times * whole * input_.param_bytes);
  }

  void reduce(ScopeTraffic& traffic, const TrafficParam& param, std::int64_t times) const {
    const std::int64_t elems = elems_of_shape(param.shape);
    const Topology& topology = input_.topology;
    // Over all ranks and without padding: an all-reduce needs no equal parts. MiCS has no second reduction in
    // this case.
    if (!zero_.reduce_scatter) {
      add(traffic, TrafficScope::world, times * 2 * elems, times * 2 * elems * input_.gradient_bytes);
      return;
    }
    // int4 needs two dimensions and a whole number of bytes per rank; other gradients are not quantized
    // (P19).
    if (gradient_path(zero_, topology, param.shape) == GradientPath::reduce_scatter) {
      const std::int64_t whole = partition_param(elems, ranks_).shard_elems * ranks_;
      add(traffic, primary_, times * whole, times * whole * input_.gradient_bytes);
      return;
    }
    // Groups of one rank's slice, elems / world elements. The first hop carries the slices of all ranks, the
    // second those of one local rank in each node.
    const std::int64_t groups = gradient_groups(param.shape, topology.world).groups;
    const std::int64_t nodes = topology.nodes();
    // With one rank per node the first hop does not exist: QuantizedReduce sends between nodes directly.
    if (topology.ranks_per_node > 1) {
      const std::int64_t scales = groups * topology.world;
      add(traffic, TrafficScope::intra_node, times * (elems + scales),
          times * (elems / 2 + scales * kScaleBytes));
    }
    // gradient_path() ensures that elems is a multiple of 2 * world, so both divisions are exact.
    const std::int64_t second = elems / topology.ranks_per_node;
    add(traffic, TrafficScope::inter_node, times * (second + groups * nodes),
        times * (second / 2 + groups * nodes * kScaleBytes));
  }

  /// Elements of one rank's owned range.
  [[nodiscard]] std::int64_t owned(const TrafficParam& param) const {
    const std::int64_t shard = partition_param(elems_of_shape(param.shape), ranks_).shard_elems;
    return (shard + input_.shard_alignment - 1) / input_.shard_alignment * input_.shard_alignment;
  }

 private:
  [[nodiscard]] static Persistence persistence_of(const TrafficParam& param) noexcept {
    return param.persistent ? Persistence::persistent : Persistence::released;
  }
  /// Whether its shards, `shard_elems` each, are stored and communicated as int8.
  [[nodiscard]] bool packed(const TrafficParam& param, std::int64_t shard_elems) const {
    return param.frozen && stored_quantized(zero_, persistence_of(param), shard_elems * input_.param_bytes);
  }

  const ZeroConfig& zero_;
  const TrafficInput& input_;
  std::uint32_t ranks_;
  TrafficScope primary_;
};

std::string shard_text(std::int64_t divisor) { return divisor == 1 ? "S" : "S/" + std::to_string(divisor); }

}  // namespace

ScopeTraffic StepTraffic::gathers() const noexcept {
  ScopeTraffic sum = persistent;
  for (const ScopeTraffic* part : {&forward, &backward}) {
    for (std::size_t i = 0; i < kTrafficScopes; ++i) {
      sum[i].elems += (*part)[i].elems;
      sum[i].bytes += (*part)[i].bytes;
    }
  }
  return sum;
}

Traffic StepTraffic::total() const noexcept {
  Traffic sum;
  for (const ScopeTraffic& part : {gathers(), reduce}) {
    for (const Traffic& traffic : part) {
      sum.elems += traffic.elems;
      sum.bytes += traffic.bytes;
    }
  }
  return sum;
}

StepTraffic step_traffic(const std::vector<TrafficParam>& params, const ZeroConfig& zero,
                         const TrafficInput& input) {
  static_cast<void>(make_zero_groups(zero, input.topology, 0));  // validates the groups
  const Counter counter(zero, input);
  StepTraffic traffic;
  std::int64_t owned = 0;
  const std::int64_t k = input.micro_steps;
  // Copies exist from the first forward to the step; with the compat switch later forwards read them too.
  const std::int64_t from_copies =
      zero.hpz_partition_size > 1 && zero.compat.hpz_secondary_in_forward ? k - 1 : 0;
  // DeepSpeed's partitions persistent parameters at the update, frozen ones too.
  const bool frozen_again = SchedulerCompat(zero.compat.scheduler).partitions_persistent_at_update();
  for (const TrafficParam& param : params) {
    // Reduced in each micro-step, persistent or not: persistence is about parameters.
    if (!param.frozen) {
      counter.reduce(traffic.reduce, param, k);
      owned += counter.owned(param);
    }
    // Our scheduler keeps a frozen one gathered: it does not change, and no step gathers it again.
    if (param.persistent) {
      if (!param.frozen) {
        counter.gather(traffic.persistent, param, 1);
      } else if (frozen_again && zero.hpz_partition_size > 1) {
        // From its copy, as below: the copy was made while no trace was followed yet.
        counter.gather_secondary(traffic.persistent, param, 1);
      } else if (frozen_again) {
        counter.gather(traffic.persistent, param, 1);
      }
      continue;
    }
    // Its copy outlives the step (weights_change() frees those of changed weights), so every pass reads it.
    // Not counted: the first forward of a run, which makes the copy.
    if (param.frozen && zero.hpz_partition_size > 1) {
      counter.gather_secondary(traffic.forward, param, k);
      counter.gather_secondary(traffic.backward, param, k);
      continue;
    }
    counter.gather(traffic.forward, param, k - from_copies);
    if (from_copies > 0) counter.gather_secondary(traffic.forward, param, from_copies);
    if (zero.hpz_partition_size > 1) {
      counter.gather_secondary(traffic.backward, param, k);
    } else {
      counter.gather(traffic.backward, param, k);
    }
  }
  // MiCS: one all-reduce of the sums of all shard groups per step, over a rank's owned range, in the type of
  // the sums. Without reduce_scatter the gradients were already summed over all ranks.
  const std::uint32_t replicas = input.topology.world / shard_world(zero, input.topology.world);
  if (replicas > 1 && zero.reduce_scatter) {
    add(traffic.reduce, TrafficScope::replica, 2 * owned, 2 * owned * input.sum_bytes);
  }
  return traffic;
}

std::string traffic_text(const ZeroConfig& zero, const Topology& topology, std::int64_t micro_steps) {
  // A single rank quantizes nothing (quantizes_weight()), whatever the key.
  const bool rounded = zero.quantized_weights && topology.world > 1;
  std::string primary = rounded ? "S int8" : zero.use_all_reduce_for_fetch_params ? "2S" : "S";
  // Both hops: elements gathered inside the node, then between nodes.
  if (gathers_hierarchically(zero, topology)) primary = "(S + " + shard_text(topology.ranks_per_node) + ")";
  const char* const copies = rounded && zero.compat.hpz_quantized_copies ? "S int8 secondary" : "S secondary";
  std::string text = primary + " + " + (zero.hpz_partition_size > 1 ? copies : primary) + " + ";
  if (!quantizes_gradients(zero, topology)) {
    text += zero.reduce_scatter ? "S" : "2S";
  } else if (topology.ranks_per_node > 1) {
    text += "(S + " + shard_text(topology.ranks_per_node) + ") int4";
  } else {
    text += "S int4";
  }
  // Outside the bracket: the replicas' all-reduce occurs once per step.
  if (micro_steps > 1) text = std::to_string(micro_steps) + "(" + text + ")";
  if (zero.quantized_nontrainable_weights && !rounded) text += ", frozen int8";
  if (shard_world(zero, topology.world) < topology.world) {
    text += " + 2" + shard_text(shard_world(zero, topology.world)) + " replicas";
  }
  return text;
}

bool has_special_traffic(const ZeroConfig& zero) noexcept {
  return zero.stage == 3 &&
         (zero.hpz_partition_size > 1 || zero.quantized_weights || zero.quantized_nontrainable_weights ||
          zero.quantized_gradients || zero.mics_shard_size > 0 || zero.use_all_reduce_for_fetch_params);
}

}  // namespace shardscope::plan
