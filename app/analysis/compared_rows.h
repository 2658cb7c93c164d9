// Differences of two runs: one row per module, kernel, collective, parameter or rank, with the statistics of
// a comparison of runs, and memory by category. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/paired_steps.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

enum class CompareBy : std::uint8_t { module, kernel, wait, collective, parameter, rank, memory };

struct ComparedRow {
  std::string name, figure, unit;
  std::optional<double> a, b;  ///< medians over steps; for memory, at the peak
  std::optional<ConfidenceInterval> interval;
  ValuesByStep in_a{}, in_b{};  ///< what the medians are of; empty for memory
  [[nodiscard]] bool differs() const noexcept { return interval && interval->excludes_zero(); }
  [[nodiscard]] double change() const noexcept { return b.value_or(0) - a.value_or(0); }
};
/// Numbers of steps, both inclusive.
struct StepBounds {
  std::uint32_t first = 0, last = UINT32_MAX;
  [[nodiscard]] bool contains(std::uint32_t step) const noexcept { return step >= first && step <= last; }
  friend bool operator==(const StepBounds&, const StepBounds&) = default;
};
/// Rows, largest change first. Modules, kernels, waits and parameters: means over ranks. Collectives: those
/// of each run's lowest rank, with times averaged over the ranks of the collective.
struct ComparedRows {
  std::vector<ComparedRow> rows;
  /// Of each interval: 95 %, or chosen so that all intervals together hold with 95 %. Unused for memory.
  double confidence = 0;
  std::string note;  ///< definition of the figures, and what was not recorded
};
/// How often the intervals of a table hold the true difference: each with 95 %, or all together.
enum class Confidence : std::uint8_t { each_row, all_rows };
/// Compares the latest `most_steps` measured steps of each run; with digests, the latest steps that both runs
/// have. Means are over the lowest `most_ranks` ranks, or of `only` this rank. `within`: only these steps.
[[nodiscard]] ComparedRows compare_by(const Run& a, const Run& b, CompareBy by,
                                      std::size_t most_steps = SIZE_MAX, std::size_t most_ranks = SIZE_MAX,
                                      Confidence of = Confidence::all_rows,
                                      std::optional<std::uint32_t> only = {}, StepBounds within = {});

}  // namespace shardscope::analysis
