// How the parameters of a plan::Gather become whole: over which ranks and by which collectives. Where their
// memory is and when they are gathered is decided elsewhere (gather_executor.h); which way each
// takes in runtime/plan (secondary_shards.h, quantization.h, zero_groups.h).
//
// [Note: ways of a gather]
// - Plain: one coalesced, in-place all-gather over all ranks (MiCS: over the shard group).
// - Flat (compat.flat_gathers), of several: the shards in a row, one all-gather of the rows into a flat
//   tensor, and each parameter is cut out of it; the tensor is free when all are. As in DeepSpeed (P13).
// - All-reduce (stage3_use_all_reduce_for_fetch_params): the shard lies at its place among zeros, and the sum
//   over ranks is the parameter.
// - Hierarchical (MiCS): between the nodes into a buffer, then inside the node to the final places, chunk by
//   chunk, so that nothing is reordered.
// - Quantized (qwZ): the shard as int8 with its scales, gathered and dequantized to the final place; the
//   owner gets the same rounded values as every other rank. A frozen shard that is stored as int8 travels as
//   it is.
// - Secondary (hpZ): from the copies of a small group, in the storage type; as int8 where the shard is stored
//   so and, with compat.hpz_quantized_copies, where qwZ rounds it.
// Everything runs on the gather stream, so temporary memory is freed as soon as its last use is queued.
#pragma once

#include <span>
#include <vector>

#include "runtime/execution/context.h"
#include "runtime/execution/events.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/secondary_shards.h"

namespace shardscope::engine {

class GatherPath {
 public:
  /// `quantized`, by ParamId: whose shards are stored as int8. What it is given outlives it, too. Throws
  /// std::invalid_argument when the configuration needs groups that `context` lacks.
  GatherPath(const execution::Context& context, const plan::Ownership& ownership,
             const std::vector<bool>& quantized);

  /// Root forward of a micro-step.
  void begin_iteration(plan::ModelMode mode) { secondary_.begin_iteration(mode); }
  /// Gathers from now on serve modules that run in this direction.
  void enter(plan::Direction direction) noexcept { secondary_.enter(direction); }
  /// Secondary: the parameter is read from the group's copies, its shard is not needed.
  [[nodiscard]] plan::GatherSource source(plan::ParamId param) const { return secondary_.source(param); }

  /// One parameter of a gather: this rank's shard, unless source() is secondary, and room for the whole,
  /// padding included. The shard may lie at its place in the whole.
  struct Part {
    plan::ParamId param{};
    const void* shard = nullptr;
    void* whole = nullptr;
    plan::Persistence persistence = plan::Persistence::released;
    bool packed = false;  ///< set by gather(): the shard is a plan::PackedShard
  };
  /// Queues the collectives of one gather on the gather stream.
  void gather(std::span<const Part> parts, comm::CollectiveLabel label);

  /// The whole parameter is about to be freed after a use: queues on the gather stream what must be kept of
  /// it. True when something was queued.
  [[nodiscard]] bool released(plan::ParamId param, const void* whole);
  /// Whether this rank has its part of a secondary copy.
  [[nodiscard]] bool secondary_held(plan::ParamId param) const { return secondary_.held(param); }
  /// Secondary copies of weights that changed are freed. Returns whose.
  std::vector<plan::ParamId> weights_change(plan::WeightChange change);

 private:
  using Parts = std::vector<Part>;
  void gather_plain(const Parts& parts, comm::CollectiveLabel label);
  void gather_flat(const Parts& parts, comm::CollectiveLabel label);
  void gather_by_all_reduce(const Parts& parts, comm::CollectiveLabel label);
  void gather_hierarchically(const Parts& parts, comm::CollectiveLabel label);
  /// `shards`: how many of them each rank of `comm` contributes, packed where they are stored so.
  void gather_quantized(comm::Communicator& comm, const Parts& parts, std::int64_t shards,
                        comm::CollectiveLabel label);
  void gather_secondary(const Parts& parts, comm::CollectiveLabel label);
  [[nodiscard]] bool stored_quantized(plan::ParamId param) const { return quantized_[plan::raw(param)]; }
  /// Coalesced, or one by one with stage3_allgather_sequential.
  void all_gather(comm::Communicator& comm, std::span<const comm::GatherPart> pieces, kernels::DType type,
                  comm::CollectiveLabel label);

  [[nodiscard]] device::Stream& stream() const { return context_.device.gather(); }
  [[nodiscard]] device::Buffer allocate(std::size_t bytes, ev::MemoryCategory category, std::uint32_t owner);
  [[nodiscard]] std::int64_t shard_elems(plan::ParamId param) const {
    return ownership_.shards().partitions[plan::raw(param)].shard_elems;
  }

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  const std::vector<bool>& quantized_;   ///< by ParamId: shards
  const std::vector<bool> int8_copies_;  ///< by ParamId: secondary copies
  comm::Communicator& comm_;             ///< of the ranks that hold one copy of the model
  plan::SecondaryShards secondary_;
  /// hpZ, by ParamId: this rank's part of the secondary copy, [padded elems / hpz_partition_size] in the
  /// storage type, or int8 with scales; empty while there is none. Of the gather stream.
  std::vector<device::Buffer> copies_;
};

}  // namespace shardscope::engine
