// The difference of a figure between two runs, from pairs of steps: the statistics of `compare`, `ab`,
// `check` and sweeps. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/step_figures.h"

namespace shardscope::analysis {

/// [Note: pairs]
/// Steps of equal number use the same samples in a deterministic run, so their difference is due to the
/// setting. With one run per side the differences, in the order of steps, are cut into blocks
/// (block_interval.h). With repeats, the first of A is paired with the first of B and so on, and each pair of
/// repeats gives one median: the variance is that between repeats, however many steps each has.
struct PairedSteps {
  std::size_t pairs = 0, repeats = 0;
  std::optional<double> base;  ///< median of the first side, over the steps that both have
  std::optional<double> difference;
  std::optional<ConfidenceInterval> interval;  ///< of the difference; nullopt with too few pairs
};
/// A figure by step, for each repeat of a side.
[[nodiscard]] PairedSteps paired_steps(const std::vector<ValuesByStep>& base,
                                       const std::vector<ValuesByStep>& side, double confidence = 0.95);

}  // namespace shardscope::analysis
