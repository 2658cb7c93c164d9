#include "runtime/plan/placed_states.h"

#include <algorithm>
#include <numeric>

#include "runtime/plan/offload.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/rounding.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/trained_layout.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {
namespace {

constexpr std::int64_t kFp32Bytes = sizeof(float);

std::size_t index(StatePool pool) { return static_cast<std::size_t>(pool); }

/// Computes the bytes of model states in each pool.
class Placing {
 public:
  Placing(const ZeroConfig& zero, const StateInput& input)
      : zero_(zero), input_(input), where_(state_placement(zero)) {}

  PlacedStates run() {
    if (zero_.stage == 3) {
      stage3();
    } else {
      flat();
    }
    return std::move(placed_);
  }

 private:
  ModelStates& in(StatePool pool) { return placed_.pools[index(pool)]; }

  void flat() {
    std::int64_t frozen = 0;
    // Frozen weights are in no layout; below stage 3 every rank stores them whole.
    for (std::size_t i = 0; i < input_.param_elems.size(); ++i) {
      if (!input_.trainable[i]) frozen += input_.param_elems[i];
    }
    // Stage 0 as a world of one: everything is owned, and padding is to a multiple of 2 elements.
    const FlatLayout layout = trained_layout({input_.param_elems, input_.trainable, input_.groups},
                                             zero_.stage == 0 ? 1 : input_.world, zero_);
    ModelStates& device = in(StatePool::device);
    device.param_owned = layout.shard_elems * input_.bytes.param;
    device.param_rest = (layout.flat_elems - layout.shard_elems) * input_.bytes.param;
    device.frozen = frozen * input_.bytes.param;
    // S1: the flat buffer has the owned parameters in pieces; the optimizer needs a contiguous copy.
    if (layout.groups_in_pieces()) placed_.pieces = device.param_owned;
    optimizer({{0, layout.shard_elems}});  // all of it in one place, groups or not
    // After optimizer(), which set the owned gradients only: stages 0 and 1 keep them whole on the device,
    // also when the owned part is copied to the host.
    if (zero_.stage < 2) device.gradient = layout.flat_elems * input_.bytes.gradient;
  }

  void stage3() {
    const std::uint32_t ranks = shard_world(zero_, input_.world);
    const std::int64_t element = input_.bytes.param;
    // The engine's planners with the engine's arguments: another alignment or persistence would change the
    // result.
    const ShardLayout layout =
        make_shard_layout(input_.param_elems, input_.trainable, ranks,
                          std::max<std::int64_t>(kShardAlignmentBytes / element, 1), input_.groups);
    const std::vector<bool> persistent = persistent_params(
        input_.param_elems, zero_.param_persistence_threshold, zero_.model_persistence_threshold);
    const std::vector<ShardPlace> places =
        place_shards(layout, zero_, static_cast<std::size_t>(element), persistent);
    const std::vector<bool> quantized =
        quantized_shards(input_.param_elems, input_.trainable, zero_, ranks, element);
    const StatePool host = zero_.offload_param.pin_memory ? StatePool::pinned : StatePool::host;
    std::array<double, 2> sums{};  // of trainable, of frozen elements
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t shard = layout.partitions[i].shard_elems;
      const std::int64_t bytes = quantized[i] ? packed_shard(shard).bytes() : shard * element;
      const StatePool pool = places[i] == ShardPlace::nvme   ? StatePool::nvme
                             : places[i] == ShardPlace::host ? host
                                                             : StatePool::device;
      const bool on_nvme = pool == StatePool::nvme;
      // In memory the shards of a pool are one buffer with aligned offsets; on NVMe each has whole blocks,
      // counted in nvme_blocks.
      in(pool).param_owned += on_nvme ? bytes : round_up(bytes, kShardAlignmentBytes);
      if (on_nvme) placed_.nvme_blocks += round_up(bytes, kSwapBlockBytes);
      if (!input_.trainable[i]) count_int8(i, quantized[i], bytes, shard, pool);
      // Shares count real elements: the expressions they are used in have no padding.
      const auto elems = static_cast<double>(input_.param_elems[i]);
      (input_.trainable[i] ? placed_.param_share : placed_.frozen_share)[index(pool)] += elems;
      sums[input_.trainable[i] ? 0 : 1] += elems;
    }
    // max(): without trainable or frozen parameters the shares are 0 and not 0/0.
    for (double& share : placed_.param_share) share /= std::max(sums[0], 1.0);
    for (double& share : placed_.frozen_share) share /= std::max(sums[1], 1.0);
    optimizer(make_sub_groups(layout, zero_.sub_group_size));
    if (zero_.hpz_partition_size < 2) return;
    const auto group = static_cast<std::uint32_t>(zero_.hpz_partition_size);
    const std::vector<bool> copies =
        quantized_copies(input_.param_elems, input_.trainable, zero_, ranks, element);
    // Every parameter, also persistent ones, which have no copy if they are never released:
    // app/analysis/memory.cpp subtracts these where it compares with measured memory.
    for (std::size_t i = 0; i < input_.param_elems.size(); ++i) {
      const std::int64_t copied = secondary_elems(input_.param_elems[i], ranks, group);
      const std::int64_t bytes =
          copies[i] ? packed_secondary(input_.param_elems[i], ranks, group).bytes() : copied * element;
      placed_.secondary_shards.push_back(bytes);
      placed_.secondary += bytes;
      count_int8(i, copies[i], bytes, copied, StatePool::device);
    }
  }

  /// Counts the bytes of `elems` elements, possibly int8, beyond the one byte per element in the expression.
  // For an int8 shard these are its scales, for others the remaining bytes of each element.
  void count_int8(std::size_t param, bool quantized, std::int64_t bytes, std::int64_t elems, StatePool pool) {
    const bool copies = zero_.quantized_weights && zero_.compat.hpz_quantized_copies;
    if (!(input_.trainable[param] ? copies : zero_.quantized_nontrainable_weights)) return;
    (quantized ? placed_.scales : placed_.unquantized)[index(pool)] += bytes - elems;
  }

  /// Owned gradients, master weights, momentum and variance of the owned range.
  void optimizer(const std::vector<Range>& groups) {
    const std::int64_t owned = groups.empty() ? 0 : groups.back().end;
    // Sub-groups tile [0, owned): the first `kept` elements are updated where they are.
    const std::int64_t kept =
        zero_.stage == 0 ? owned : first_offloaded_elem(zero_.offload_optimizer, groups);
    const std::int64_t moved = owned - kept;
    if (owned > 0) placed_.offloaded_share = static_cast<double>(moved) / static_cast<double>(owned);
    ModelStates& device = in(StatePool::device);
    // If parameters are offloaded, the device has its own fp32 weights.
    device.master = kept * (where_.params == StatePool::device ? input_.bytes.master : kFp32Bytes);
    device.momentum = kept * input_.bytes.momentum;
    device.variance = kept * input_.bytes.variance;
    device.gradient = kept * input_.bytes.gradient;
    if (moved == 0) return;
    // Assigned, not added: if something is offloaded, neither of the two pools is the device's.
    in(where_.gradients).gradient = moved * input_.bytes.gradient;
    ModelStates& states = in(where_.optimizer);
    states.master = moved * kFp32Bytes;
    states.momentum = moved * input_.bytes.momentum;
    states.variance = moved * input_.bytes.variance;
    if (where_.optimizer != StatePool::nvme) return;
    const std::uint32_t first = first_offloaded_group(zero_.offload_optimizer, groups.size());
    const OptimizerSwap swap = plan_optimizer_swap(zero_.offload_optimizer, groups, first);
    // Each tile has its three states in whole blocks of their own: direct transfers begin and end at a block.
    for (const UpdateTile& tile : make_update_tiles(groups, first, swap.tile_elems)) {
      placed_.nvme_blocks += 3 * round_up(tile.range.size() * kFp32Bytes, kSwapBlockBytes);
    }
  }

  const ZeroConfig& zero_;
  const StateInput& input_;
  const StatePlacement where_;
  PlacedStates placed_;
};

}  // namespace

FrozenSecondary frozen_secondary(const ZeroConfig& zero, const StateBytes& bytes) {
  if (zero.stage != 3 || zero.hpz_partition_size < 2) return {};
  const std::int64_t element = frozen_bytes(bytes, zero).param;
  const std::int64_t ranks = zero.hpz_partition_size;
  return {static_cast<double>(element) / static_cast<double>(ranks),
          StateExpression{element, 0}.text("F") + "/" + std::to_string(ranks) + " (hpZ)"};
}

PlacedStates placed_states(const ZeroConfig& zero, const StateInput& input) {
  return Placing(zero, input).run();
}

}  // namespace shardscope::plan
