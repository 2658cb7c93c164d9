// The owner of each element. Pure arithmetic over ranges; see docs/zero.md P4 (stage 3: parameter by
// parameter) and S2-S6 (stages 1 and 2: one flat, padded range).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// Half-open element range.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return end > begin ? end - begin : 0; }
};

[[nodiscard]] Range intersect(Range a, Range b) noexcept;

/// Stage 3: one parameter over `world` ranks (P4). Every rank holds `shard_elems`; the tail of the
/// last rank or ranks is padding.
struct ParamPartition {
  std::int64_t elems = 0;
  std::int64_t shard_elems = 0;                                       ///< ceil(elems / world)
  std::int64_t padding_elems = 0;                                     ///< shard_elems * world - elems
  [[nodiscard]] Range real_range(std::uint32_t rank) const noexcept;  ///< within the parameter, padding cut
};
[[nodiscard]] ParamPartition partition_param(std::int64_t elems, std::uint32_t world);

/// A piece of one parameter inside the part of the flat buffer that one rank owns.
struct FlatSlice {
  ParamId param{};
  std::uint32_t rank = 0;
  std::int64_t param_offset = 0;  ///< first element within the parameter
  std::int64_t shard_offset = 0;  ///< first element within the rank's owned range
  std::int64_t elems = 0;
};

/// An interval of the flat buffer, divided into one sub-partition of equal length per rank: a parameter
/// group, or in the first layout of stage 1 (S1) a communication.
struct FlatInterval {
  Range owned;              ///< its sub-partition, within a rank's owned range
  std::uint32_t group = 0;  ///< parameter group
  std::int64_t real_elems =
      0;  ///< of all its sub-partitions together, from the first on; the remainder is padding
};

/// Stages 1 and 2: the trainable parameters of a parameter group concatenated and padded to a multiple of
/// 2 * world (S2), the groups one after the other. A rank owns one sub-partition of each interval; in the
/// flat buffer interval i begins at world * intervals[i].owned.begin. With one group a rank owns one range.
struct FlatLayout {
  std::uint32_t world = 1;
  std::int64_t elems = 0;                  ///< without padding
  std::int64_t flat_elems = 0;             ///< with padding
  std::int64_t shard_elems = 0;            ///< flat_elems / world
  std::vector<FlatInterval> intervals;     ///< ascending, without gaps over the owned range; never empty
  std::vector<ParamId> order;              ///< without frozen parameters, which are in no layout
  std::vector<std::int64_t> param_offset;  ///< by ParamId: first element within the flat buffer
  std::vector<std::int64_t> param_elems;   ///< by ParamId
  std::vector<FlatSlice> slices;           ///< ascending in the flat buffer
  [[nodiscard]] std::vector<FlatSlice> slices_of(ParamId param) const;
  [[nodiscard]] std::int64_t elems_of(ParamId param) const { return param_elems.at(raw(param)); }
  /// Elements of this rank's sub-partitions that are padding (S5).
  [[nodiscard]] std::int64_t padding_of(std::uint32_t rank) const noexcept;
  /// First element within the flat buffer of this rank's sub-partition of an interval.
  [[nodiscard]] std::int64_t sub_partition_begin(std::size_t interval, std::uint32_t rank) const noexcept {
    const Range& owned = intervals[interval].owned;
    return owned.begin * static_cast<std::int64_t>(world) + owned.size() * static_cast<std::int64_t>(rank);
  }
  /// First element within the flat buffer of elements [owned) of this rank's owned range, which lie in one
  /// interval.
  [[nodiscard]] std::int64_t flat_begin(Range owned, std::uint32_t rank) const noexcept;
  /// Whether a rank owns several separate ranges of one parameter group in the flat buffer (S1).
  [[nodiscard]] bool groups_in_pieces() const noexcept;
};
/// The flat buffer is padded to a multiple of this many elements per rank (S2: every partition starts at
/// a 4-byte boundary for 16-bit elements).
inline constexpr std::int64_t kFlatAlignment = 2;
enum class GradientOrder : std::uint8_t { parameter_order, round_robin };
[[nodiscard]] FlatLayout make_flat_layout(const ModelPlan& model, std::uint32_t world,
                                          GradientOrder order = GradientOrder::parameter_order);
/// The same from sizes and parameter groups, by ParamId. Without groups: one group.
[[nodiscard]] FlatLayout make_flat_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                                          GradientOrder order = GradientOrder::parameter_order,
                                          const std::vector<std::uint32_t>& groups = {});

/// Elements of one communication of the first ZeRO-1 (S1, best_max_elems_per_comm of DeepSpeed 0.5): `limit`,
/// or more if one communication fewer needs less padding.
[[nodiscard]] std::int64_t best_elems_per_comm(std::int64_t elems, std::int64_t limit, std::uint32_t world);
/// The layout of the first ZeRO-1 (S1): communications of about `max_elems_per_comm`
/// elements, each cut into one sub-partition per rank. Throws std::invalid_argument when `max_elems_per_comm`
/// is less than one element per rank.
[[nodiscard]] FlatLayout make_legacy_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                                            std::int64_t max_elems_per_comm,
                                            GradientOrder order = GradientOrder::parameter_order,
                                            const std::vector<std::uint32_t>& groups = {});
[[nodiscard]] FlatLayout make_legacy_layout(const ModelPlan& model, std::uint32_t world,
                                            std::int64_t max_elems_per_comm,
                                            GradientOrder order = GradientOrder::parameter_order);

}  // namespace shardscope::plan
