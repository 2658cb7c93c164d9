// Ranks that became slow in a run of hours or weeks: which, since when, by how much, and whether it grows.
// From each rank's own time over stretches of steps, which a recording with limits keeps of the whole run.
// docs/findings/straggler.md has the method in words.
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

/// How a rank's own time left that of the others.
enum class DriftShape : std::uint8_t {
  always,   ///< as slow in the first stretch that is kept as in the last
  at_once,  ///< from one stretch to the next
  grows,    ///< steadily, from some stretch on or from the first
};
[[nodiscard]] const char* name_of(DriftShape shape) noexcept;  ///< "always", "at_once", "grows"

struct RankDrift {
  std::uint32_t rank = 0;
  DriftShape shape = DriftShape::always;
  /// When it began, and where that lies with 95 %; run's clock. Of `always` and where it grows from the first
  /// stretch on all three are the begin of what is kept.
  std::int64_t since_ns = 0, since_low_ns = 0, since_high_ns = 0;
  std::uint32_t since_step = 0;
  std::int64_t until_ns = 0;  ///< end of the last stretch in which it was slow
  bool over = false;          ///< in the stretches after that it was not, as far as measured: after_pct
  /// Own time over the median of the others' less 1, in percent, from since_ns to until_ns; nothing where it
  /// grows. [Note: confidence of a drift].
  std::optional<ConfidenceInterval> excess_pct;
  /// Of `at_once`: the same from the first stretch up to since_ns, and by how many percent points it rose.
  std::optional<double> before_pct;
  std::optional<ConfidenceInterval> change_pct;
  /// Where it is over: the same after until_ns; 95 % of this alone.
  std::optional<ConfidenceInterval> after_pct;
  double last_pct = 0;                             ///< the same of the last twelfth of these stretches
  std::optional<ConfidenceInterval> pct_per_hour;  ///< of `grows`
  double own_ms = 0, others_ms = 0;  ///< of a step, of that last part: mean, and mean of the median
};

/// Those that last first, largest first; at most kMostDrifts. Of a rank the latest one.
inline constexpr std::size_t kMostDrifts = 8;
[[nodiscard]] std::vector<RankDrift> rank_drifts(std::span<const store::OwnTimeRow> times,
                                                 std::span<const store::StepRow> steps);
/// "since 312.4 h of the run (311.0 to 314.1 h), ...": without the rank.
[[nodiscard]] std::string text_of(const RankDrift& drift);
/// null where the recording has no own times.
[[nodiscard]] nlohmann::json drifts_json(const std::optional<std::vector<RankDrift>>& drifts);

}  // namespace shardscope::analysis
