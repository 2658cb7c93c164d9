// Which elements of each parameter a rank updates, and which frozen elements it stores, for every stage.
// Shared by the optimizer, initialisation, loading, saving and the tables of a run.
//
// [Note: frozen parameters]
// A frozen parameter has no gradient and no optimizer state, so it is in no rank's owned range: its elements
// are numbered from owned_elems() on. Stages 0 to 2 store it whole on every rank, in the storage type, and
// never communicate it; stage 3 shards it like the others.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// A piece of one parameter inside the range of elements that one rank updates (its owned range), or behind
/// it if the parameter is frozen.
struct OwnedSlice {
  ParamId param{};
  std::uint32_t rank = 0;
  std::int64_t param_offset = 0;   ///< first element within the parameter
  std::int64_t owned_offset = 0;   ///< first element within the rank's owned range
  std::int64_t elems = 0;          ///< real elements; 0 for a shard that is padding only
  std::int64_t padding_elems = 0;  ///< stage 3: rest of the shard
};

/// Stage 0: every rank owns everything. Stages 1 and 2: a range of the flat, padded parameters of each
/// parameter group, or in the first layout of stage 1 a range of each communication. Stage 3: a shard of
/// every parameter; with MiCS rank r owns what rank r % shard_world() owns.
class Ownership {
 public:
  /// `shard_alignment` (elements) applies to stage 3. Throws std::invalid_argument on a stage above 3.
  Ownership(const ModelPlan& model, const ZeroConfig& zero, std::uint32_t world,
            std::int64_t shard_alignment = 1);

  [[nodiscard]] std::uint32_t stage() const noexcept { return stage_; }
  [[nodiscard]] std::uint32_t world() const noexcept { return world_; }
  /// Ranks that hold one copy of everything together: the world, or fewer with MiCS.
  [[nodiscard]] std::uint32_t shard_world() const noexcept { return shard_world_; }
  /// Elements of one rank's owned range, padding included; the same on every rank.
  [[nodiscard]] std::int64_t owned_elems() const noexcept { return owned_elems_; }
  /// Elements of frozen parameters that one rank stores, with the padding of stage 3.
  [[nodiscard]] std::int64_t frozen_elems() const noexcept { return frozen_elems_; }
  /// Whether a slice that starts at `owned_offset` belongs to a frozen parameter.
  [[nodiscard]] bool frozen_at(std::int64_t owned_offset) const noexcept {
    return owned_offset >= owned_elems_;
  }
  /// Every rank holds all elements of the parameter: stage 0, and frozen ones in stages 1 and 2.
  [[nodiscard]] bool whole_everywhere(ParamId param) const {
    return stage_ == 0 || (stage_ < 3 && frozen_offset_.at(raw(param)) >= 0);
  }
  /// Stages 0 to 2, of a frozen parameter: its first element behind the owned range.
  [[nodiscard]] std::int64_t frozen_offset(ParamId param) const { return frozen_offset_.at(raw(param)); }
  /// Units of the optimizer step, ascending, covering the owned range: stage 3 by sub_group_size, else one
  /// for each parameter group.
  [[nodiscard]] const std::vector<Range>& sub_groups() const noexcept { return sub_groups_; }
  /// The parameter group of each sub-group: none spans two.
  [[nodiscard]] const std::vector<std::uint32_t>& param_group_of() const noexcept { return param_group_of_; }
  /// Slices of one parameter on one rank, ascending.
  [[nodiscard]] std::vector<OwnedSlice> slices(ParamId param, std::uint32_t rank) const;

  /// Stages 0 (for one rank), 1 and 2.
  [[nodiscard]] const FlatLayout& flat() const noexcept { return flat_; }
  /// Stage 3.
  [[nodiscard]] const ShardLayout& shards() const noexcept { return shards_; }

 private:
  std::uint32_t stage_;
  std::uint32_t world_;
  std::uint32_t shard_world_;
  std::int64_t owned_elems_ = 0;
  std::int64_t frozen_elems_ = 0;
  std::vector<std::int64_t> frozen_offset_;  ///< stages 0 to 2, by ParamId; -1: trained
  std::vector<Range> sub_groups_;
  std::vector<std::uint32_t> param_group_of_;  ///< by sub-group
  FlatLayout flat_;
  ShardLayout shards_;
};

}  // namespace shardscope::plan
