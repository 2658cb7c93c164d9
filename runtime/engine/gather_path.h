// How the parameters of a plan::Gather are gathered: over which ranks and by which collectives.
// gather_executor.h decides where and when; runtime/plan decides the path of each (secondary_shards.h,
// quantization.h, zero_groups.h).
//
// [Note: ways of a gather]
// - Plain: one coalesced, in-place all-gather over all ranks (MiCS: over the shard group).
// - Flat (compat.flat_gathers), for several parameters: the shards are concatenated to a row, one all-gather
//   of the rows fills a flat tensor, and each parameter is copied out of it. As in DeepSpeed (P13).
// - All-reduce (stage3_use_all_reduce_for_fetch_params): the shard is placed among zeros, and the sum over
//   ranks is the parameter.
// - Hierarchical (MiCS): between nodes into a buffer, then inside the node to the final offsets, chunk by
//   chunk, so that nothing is reordered.
// - Quantized (qwZ): the shard as int8 with its scales, gathered and dequantized to the final offset; the
//   owner gets the same rounded values as every other rank. A frozen shard stored as int8 is sent as it is.
// - Secondary (hpZ): from the copies of a small group, in the storage type; as int8 if the shard is stored so
//   or, with compat.hpz_quantized_copies, if qwZ rounds it.
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
  /// `quantized`, by ParamId: whether the shard is stored as int8. All arguments must outlive it. Throws
  /// std::invalid_argument if the configuration needs groups that `context` does not have.
  GatherPath(const execution::Context& context, const plan::Ownership& ownership,
             const std::vector<bool>& quantized);

  /// Call at the root forward of a micro-step or evaluation batch.
  void begin_iteration(plan::ModelMode mode) { secondary_.begin_iteration(mode); }
  /// Gathers from now on serve modules that run in this direction.
  void enter(plan::Direction direction) noexcept { secondary_.enter(direction); }
  /// If secondary, the parameter is read from the group's copies and its shard is not needed.
  [[nodiscard]] plan::GatherSource source(plan::ParamId param) const { return secondary_.source(param); }

  /// One parameter of a gather: this rank's shard, unless source() is secondary, and memory for the whole,
  /// padding included. The shard may be inside it, at its offset.
  struct Part {
    plan::ParamId param{};
    const void* shard = nullptr;
    void* whole = nullptr;
    plan::Persistence persistence = plan::Persistence::released;
    bool packed = false;  ///< set by gather(): the shard is a plan::PackedShard
  };
  /// Queues the collectives of one gather on the gather stream.
  void gather(std::span<const Part> parts, comm::CollectiveLabel label);

  /// The whole parameter is about to be freed after a use: queues on the gather stream the copy of the part
  /// to keep, if any. Returns whether something was queued.
  [[nodiscard]] bool released(plan::ParamId param, const void* whole);
  /// Whether this rank has its part of a secondary copy.
  [[nodiscard]] bool secondary_held(plan::ParamId param) const { return secondary_.held(param); }
  /// Frees the secondary copies of weights that changed. Returns their parameters.
  std::vector<plan::ParamId> weights_change(plan::WeightChange change);

 private:
  using Parts = std::vector<Part>;
  void gather_plain(const Parts& parts, comm::CollectiveLabel label);
  void gather_flat(const Parts& parts, comm::CollectiveLabel label);
  void gather_by_all_reduce(const Parts& parts, comm::CollectiveLabel label);
  void gather_hierarchically(const Parts& parts, comm::CollectiveLabel label);
  /// `shards`: number that each rank of `comm` contributes, packed if stored so.
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
