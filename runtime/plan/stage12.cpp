#include "runtime/plan/stage12.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardscope::plan {
namespace {

/// Owners of a bucket's elements, neighbours with the same owner merged.
std::vector<ReduceSlice> merged_slices(const FlatLayout& layout, const Flush& flush) {
  std::vector<ReduceSlice> merged;
  std::int64_t offset = 0;  // in the bucket: gradients are in order of arrival, not of the flat layout
  for (const ParamId param : flush.params) {
    // Every element of a parameter is in one of its slices, so `offset` runs over the bucket without gaps.
    for (const FlatSlice& slice : layout.slices_of(param)) {
      // Also across parameters: they are adjacent in the bucket, though perhaps not in the flat buffer (S10).
      if (!merged.empty() && merged.back().rank == slice.rank) {
        merged.back().elems += slice.elems;
      } else {
        merged.push_back({slice.rank, offset, slice.elems});
      }
      offset += slice.elems;
    }
  }
  return merged;
}

/// Groups slices into collectives and starts a new one after the slice that exceeds the limit, as in
/// DeepSpeed, so a collective may exceed the limit by less than one slice.
void cut(const std::vector<ReduceSlice>& slices, const ReduceCollective& like, std::int64_t limit,
         std::vector<ReduceCollective>& collectives) {
  ReduceCollective open = like;
  for (const ReduceSlice& slice : slices) {
    open.slices.push_back(slice);
    open.elems += slice.elems;
    // exchange() leaves an empty collective of the same kind and destination.
    if (open.elems > limit) collectives.push_back(std::exchange(open, like));
  }
  if (!open.slices.empty()) collectives.push_back(std::move(open));
}

}  // namespace

const char* to_string(ReduceMode mode) noexcept {
  switch (mode) {
    case ReduceMode::to_owners:
      return "reduce to owners";
    case ReduceMode::multi_rank:
      return "all-reduce over slices";
    case ReduceMode::whole_bucket:
      return "all-reduce of whole buckets";
  }
  return "?";
}

// S12: without reduce_scatter there are no owners to reduce to; stage 0 never has any.
ReduceMode reduce_mode(const ZeroConfig& zero) noexcept {
  if (zero.stage == 0 || !zero.reduce_scatter) return ReduceMode::whole_bucket;
  // DeepSpeed's key is true by default and would make every run cost 3S: the switch of D4 is needed as well.
  return zero.use_multi_rank_bucket_allreduce && zero.compat.multi_rank_bucket_allreduce
             ? ReduceMode::multi_rank
             : ReduceMode::to_owners;
}

bool issues_one_by_one(const ZeroConfig& zero) noexcept {
  return zero.stage < 3 && zero.compat.multi_rank_bucket_allreduce;
}

std::vector<ReduceCollective> plan_reduce(const FlatLayout& layout, const Flush& flush, ReduceMode mode,
                                          std::int64_t bucket_elems) {
  std::vector<ReduceCollective> collectives;
  if (flush.params.empty()) return collectives;
  switch (mode) {
    case ReduceMode::whole_bucket:
      // No slices: slices_of() returns the whole bucket then.
      collectives.push_back({ReduceCollective::Op::all_reduce, 0, flush.elems, {}});
      break;
    case ReduceMode::multi_rank:
      cut(merged_slices(layout, flush), {ReduceCollective::Op::all_reduce, 0, 0, {}}, bucket_elems,
          collectives);
      break;
    case ReduceMode::to_owners: {
      // Owners in order of first appearance: the order of issue must be the same on all ranks, as the bucket
      // is.
      std::vector<std::pair<std::uint32_t, std::vector<ReduceSlice>>> by_owner;
      for (const ReduceSlice& slice : merged_slices(layout, flush)) {
        auto owner = std::find_if(by_owner.begin(), by_owner.end(),
                                  [&slice](const auto& entry) { return entry.first == slice.rank; });
        // A linear search: a bucket has few owners, and a map would sort them by rank.
        if (owner == by_owner.end()) owner = by_owner.insert(by_owner.end(), {slice.rank, {}});
        owner->second.push_back(slice);
      }
      for (const auto& [rank, slices] : by_owner) {
        cut(slices, {ReduceCollective::Op::reduce, rank, 0, {}}, bucket_elems, collectives);
      }
      break;
    }
  }
  return collectives;
}

std::vector<FlatSlice> slices_of(const FlatLayout& layout, const Flush& flush,
                                 const ReduceCollective& collective) {
  std::vector<FlatSlice> carried;
  std::int64_t offset = 0;
  for (const ParamId param : flush.params) {
    for (const FlatSlice& slice : layout.slices_of(param)) {
      // Collectives are cut between slices: a slice is carried whole or not at all.
      const bool inside =
          std::any_of(collective.slices.begin(), collective.slices.end(), [offset](const auto& s) {
            return offset >= s.bucket_offset && offset < s.bucket_offset + s.elems;
          });
      if (collective.slices.empty() || inside) carried.push_back(slice);
      offset += slice.elems;
    }
  }
  return carried;
}

std::vector<Range> all_gather_shards(std::int64_t shard_elems, std::uint32_t world, std::int64_t bucket_elems,
                                     bool ignore_limit) {
  // D5, or nothing to cut: one piece, an empty one of an empty partition.
  if (ignore_limit || bucket_elems < 1 || shard_elems < 1) return {{0, shard_elems}};
  // No more pieces than the alignment allows, or their equal length would round down to 0.
  const std::int64_t pieces =
      std::clamp<std::int64_t>(shard_elems * static_cast<std::int64_t>(world) / bucket_elems, 1,
                               std::max<std::int64_t>(1, shard_elems / kFlatAlignment));
  std::int64_t length = shard_elems / pieces;
  length -= length % kFlatAlignment;
  std::vector<Range> shards;
  for (std::int64_t i = 0; i < pieces; ++i) {
    // The last piece is the longest: it includes the remainder of rounding down (S20).
    shards.push_back({i * length, i + 1 == pieces ? shard_elems : (i + 1) * length});
  }
  return shards;
}

}  // namespace shardscope::plan
