// By how much a figure of two runs differs, of steps in pairs: what `compare`, `ab`, `check` and sweeps say
// is judged by this alone. Definitions: metrics.md 2.9.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/step_figures.h"

namespace shardscope::analysis {

/// [Note: pairs]
/// Steps with the same number have the same samples where a run is deterministic, so their difference is the
/// setting's and not the sample's. Of one run a side the differences, in the order of steps, are cut into
/// blocks (block_interval.h). Of repeats, the first of A with the first of B and so on, each pair of repeats
/// gives one median: what differs between repeats counts, however many steps each has.
struct PairedSteps {
  std::size_t pairs = 0, repeats = 0;
  std::optional<double> base;  ///< median of the first side's, of the steps that both have
  std::optional<double> difference;
  std::optional<ConfidenceInterval> interval;  ///< of it; nothing where there are too few
};
/// A figure by step of each repeat of a side.
[[nodiscard]] PairedSteps paired_steps(const std::vector<ValuesByStep>& base,
                                       const std::vector<ValuesByStep>& side, double confidence = 0.95);

}  // namespace shardscope::analysis
