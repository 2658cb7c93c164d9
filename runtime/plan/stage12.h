// Stages 0, 1 and 2: which bucket is reduced when, by which collectives, and how parameters are gathered
// after the step (docs/zero.md S8-S20).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/bucket.h"
#include "runtime/plan/overlap.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// How the slices of a bucket are reduced (docs/zero.md D4, S11, S12).
enum class ReduceMode : std::uint8_t {
  to_owners,     ///< one reduce per owner: S elements
  multi_rank,    ///< one all-reduce over all slices, owners keep theirs: 2S elements
  whole_bucket,  ///< one all-reduce over the whole bucket (stage 0; reduce_scatter false)
};
[[nodiscard]] const char* to_string(ReduceMode mode) noexcept;

/// The mode that a configuration selects. Stage 0 and `reduce_scatter: false` reduce whole buckets; the
/// all-reduce over slices needs both DeepSpeed's key and the compatibility switch.
[[nodiscard]] ReduceMode reduce_mode(const ZeroConfig& zero) noexcept;

/// Whether the collectives of a bucket are issued one by one as plan_reduce lists them, so that their order,
/// cuts and owners are DeepSpeed's: stages 0 to 2 under the compatibility switch. Otherwise a bucket is one
/// grouped collective, which moves the same elements to the same owners.
[[nodiscard]] bool issues_one_by_one(const ZeroConfig& zero) noexcept;

/// Whether the micro-step reduces gradients: stages 0 and 1 in the last of an accumulation window only (S15).
[[nodiscard]] constexpr bool reduces_now(std::uint32_t stage, bool boundary) noexcept {
  return stage >= 2 || boundary;
}
/// Why the last bucket of a backward is flushed.
[[nodiscard]] constexpr FlushReason last_flush_reason(std::uint32_t stage) noexcept {
  return stage < 2 ? FlushReason::boundary : FlushReason::epilogue;
}

/// Neighbouring elements of a flushed bucket with the same owner.
struct ReduceSlice {
  std::uint32_t rank = 0;
  std::int64_t bucket_offset = 0;  ///< first element within the bucket, its gradients in arrival order
  std::int64_t elems = 0;
};

struct ReduceCollective {
  enum class Op : std::uint8_t { reduce, all_reduce } op = Op::reduce;
  std::uint32_t rank = 0;           ///< reduce: destination
  std::int64_t elems = 0;           ///< per rank
  std::vector<ReduceSlice> slices;  ///< none for a whole bucket
};

/// The collectives of one flush, in issue order. `to_owners`: per owner in order of first appearance;
/// `multi_rank`: all slices. Both are cut after the slice that takes a collective over `bucket_elems`.
[[nodiscard]] std::vector<ReduceCollective> plan_reduce(const FlatLayout& layout, const Flush& flush,
                                                        ReduceMode mode, std::int64_t bucket_elems);

/// Slices that a collective of plan_reduce carries, in the order of the bucket.
[[nodiscard]] std::vector<FlatSlice> slices_of(const FlatLayout& layout, const Flush& flush,
                                               const ReduceCollective& collective);

/// A bucket to reduce now.
struct DueFlush {
  Flush flush;
  std::vector<ReduceCollective> collectives;
};

/// The pieces in which a partition is all-gathered after the step (S20). Without limit: one. With: max(1,
/// partition * world / bucket) pieces of equal, aligned length; the last one includes the remainder.
[[nodiscard]] std::vector<Range> all_gather_shards(std::int64_t shard_elems, std::uint32_t world,
                                                   std::int64_t bucket_elems, bool ignore_limit);

}  // namespace shardscope::plan
