// Compares several runs with the first of them. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// A run, or repeats of it with the same settings.
struct SweepSide {
  std::string label;  ///< "A"
  std::vector<Run> runs;
};

/// A figure of one side; changes are relative to the first side, which has none.
struct SweepValue {
  std::optional<double> value;  ///< median over measured steps of all repeats; largest of a figure per run
  std::optional<double> change_pct;
  std::optional<ConfidenceInterval> interval;  ///< of change_pct; nullopt for figures with one value per run
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
  std::string verdict;  ///< on step time, supported by the intervals
  /// Confidence of each interval: all intervals of a figure hold together with kTogether (Bonferroni).
  double confidence = 0;
  std::vector<SweepFigure> figures;
  std::vector<SweepSetting> settings;  ///< those that differ between sides
  std::vector<std::size_t> measured_steps;
  std::vector<bool> simulated;
  std::vector<std::vector<std::string>> missing;  ///< why each side's figures are incomplete
  static constexpr double kTogether = 0.95;
};

/// [Note: several comparisons]
/// One in twenty equal runs lies outside its own 95 % interval: with n runs compared with the first, each
/// interval has confidence 1 - 0.05 / n. Steps are paired by number and cut into blocks (block_interval); if
/// every side has the same number of repeats, two or more, each pair of repeats gives one value instead, so
/// that the interval includes the variance between starts of the same settings. Needs at least two sides,
/// each with a run.
[[nodiscard]] Sweep sweep(const std::vector<SweepSide>& sides);

}  // namespace shardscope::analysis
