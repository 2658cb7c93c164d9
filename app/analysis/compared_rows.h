// Where two runs differ: a row for each module, kernel, collective, parameter or rank, judged as a comparison
// of the whole runs is, and memory by category. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

enum class CompareBy : std::uint8_t { module, kernel, collective, parameter, rank, memory };

struct ComparedRow {
  std::string name, figure, unit;
  std::optional<double> a, b;  ///< medians over steps, of memory the peak's
  std::optional<ConfidenceInterval> interval;
  [[nodiscard]] bool differs() const noexcept { return interval && interval->excludes_zero(); }
  [[nodiscard]] double change() const noexcept { return b.value_or(0) - a.value_or(0); }
};
/// Largest change first. Of modules, kernels and parameters means over ranks; collectives are those of each
/// run's lowest rank, their times means over the ranks that are in them.
struct ComparedRows {
  std::vector<ComparedRow> rows;
  /// Of each interval: so high that all of them together are right with 95 %. Of memory: none.
  double confidence = 0;
  std::string note;  ///< what a row's figures are, and what was not recorded
};
/// Of the latest `most_steps` steps of each run, where its measured ones are more: the latest that both have,
/// where the digests are given. Means are over the lowest `most_ranks` ranks.
[[nodiscard]] ComparedRows compare_by(const Run& a, const Run& b, CompareBy by,
                                      std::size_t most_steps = SIZE_MAX, std::size_t most_ranks = SIZE_MAX);

}  // namespace shardscope::analysis
