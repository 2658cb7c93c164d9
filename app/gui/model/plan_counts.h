// Counts per step of what a run's plan decided: gathers, prefetches, flushes, bytes per operation, and what
// bounds the step. Compared between two runs they explain the difference.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct PlanCount {
  enum class Unit : std::uint8_t { number, elements, ms };
  std::string what;  ///< "all-gathers", "flushes: bucket full"
  Unit unit = Unit::number;
  double of_a_step = 0;  ///< per step of the lowest rank; prefetches: mean over ranks
};
[[nodiscard]] std::vector<PlanCount> plan_counts(const store::Store& store, const analysis::Summary& summary);

/// Rows of either run that differ, in A's order first. A row missing in one run counts as 0
/// there.
[[nodiscard]] Table plan_difference(const std::vector<PlanCount>& a, const std::vector<PlanCount>& b);

}  // namespace shardscope::gui
