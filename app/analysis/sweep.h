// Several runs against the first of them. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// A run, or what was run again with the same settings (repeats).
struct SweepSide {
  std::string label;  ///< "A"
  std::vector<Run> runs;
};

/// A figure of one side; the change is against the first side, of which there is none.
struct SweepValue {
  std::optional<double> value;  ///< median over the measured steps of all repeats; of a run's one figure too
  std::optional<double> change_pct;
  std::optional<ConfidenceInterval> interval;  ///< of change_pct; none of figures that a run has one of
  std::size_t pairs = 0;                       ///< measured steps that both have
  [[nodiscard]] bool differs() const noexcept { return interval && interval->excludes_zero(); }
};

struct SweepFigure {
  std::string name, title, unit;
  bool lower_is_better = true;
  std::vector<SweepValue> values;  ///< by side
};

struct SweepSetting {
  std::string key;
  std::vector<std::string> values;  ///< by side, as JSON; empty: absent
};

struct Sweep {
  std::string verdict;  ///< about step time, no stronger than the intervals
  /// Confidence of one interval, so that all intervals of a figure hold together with kTogether (Bonferroni).
  double confidence = 0;
  std::vector<SweepFigure> figures;
  std::vector<SweepSetting> settings;  ///< those that not every side has alike
  std::vector<std::size_t> measured_steps;
  std::vector<bool> simulated;
  std::vector<std::vector<std::string>> missing;  ///< what each side's figures lack, in words
  static constexpr double kTogether = 0.95;
};

/// [Note: several comparisons]
/// One in twenty runs that do not differ at all is outside of its own 95 % interval: with n runs against the
/// first each interval has 1 - 0.05 / n. Steps are taken in pairs by number and cut into blocks
/// (block_interval); where every side has the same number of repeats, two or more, each pair of repeats is
/// one value instead: how runs of the same settings differ from start to start is then in the interval. Two
/// sides at least, each with a run.
[[nodiscard]] Sweep sweep(const std::vector<SweepSide>& sides);

}  // namespace shardscope::analysis
