// Ranks that became slow in a run of hours or weeks: which, since when, by how much, and whether it grows.
// Computed from each rank's own time over stretches of steps, which a recording with limits keeps for the
// whole run. docs/findings/straggler.md explains the method.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// How a rank's own time rose above that of the other ranks.
enum class DriftShape : std::uint8_t {
  always,   ///< equally slow from the first recorded stretch to the last
  at_once,  ///< from one stretch to the next
  grows,    ///< steadily, from some stretch on or from the first
};
[[nodiscard]] const char* name_of(DriftShape shape) noexcept;  ///< "always", "at_once", "grows"

struct RankDrift {
  std::uint32_t rank = 0;
  DriftShape shape = DriftShape::always;
  /// When it began, and its 95 % interval; in run time. For `always`, and for `grows` from the first stretch
  /// on, all three are the begin of the recorded stretches.
  std::int64_t since_ns = 0, since_low_ns = 0, since_high_ns = 0;
  std::uint32_t since_step = 0;
  std::int64_t until_ns = 0;  ///< end of the last stretch in which it was slow
  bool over = false;          ///< not slow in the measured stretches afterwards: see after_pct
  /// Own time over the median of the other ranks, minus 1, in percent, from since_ns to until_ns; nullopt for
  /// `grows`. [Note: confidence of a drift].
  std::optional<ConfidenceInterval> excess_pct;
  /// For `at_once`: the same from the first stretch to since_ns, and its increase in percentage points.
  std::optional<double> before_pct;
  std::optional<ConfidenceInterval> change_pct;
  /// If it is over: the same after until_ns, with a 95 % interval of its own.
  std::optional<ConfidenceInterval> after_pct;
  double last_pct = 0;                             ///< the same over the last twelfth of these stretches
  std::optional<ConfidenceInterval> pct_per_hour;  ///< for `grows`
  double own_ms = 0, others_ms = 0;                ///< per step in that last part: mean; mean of the median
};

/// Lasting drifts first, largest first; at most kMostDrifts. For each rank its latest drift.
inline constexpr std::size_t kMostDrifts = 8;
[[nodiscard]] std::vector<RankDrift> rank_drifts(std::span<const store::OwnTimeRow> times,
                                                 std::span<const store::StepRow> steps);
/// "since 312.4 h of the run (311.0 to 314.1 h), ...", without the rank.
[[nodiscard]] std::string text_of(const RankDrift& drift);
/// null if own times are not known: store::own_times() and own_times_of() (own_times.h) are empty.
[[nodiscard]] nlohmann::json drifts_json(const std::optional<std::vector<RankDrift>>& drifts);

}  // namespace shardscope::analysis
