// What a run's plan decided, as counts of a step: gathers, prefetches, flushes, what each operation moves,
// and what bounds the step. Of two runs side by side it is the explanation of their difference.
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
  double of_a_step = 0;  ///< of the lowest rank; prefetches: a rank's mean
};
[[nodiscard]] std::vector<PlanCount> plan_counts(const store::Store& store, const analysis::Summary& summary);

/// Rows of either, A's order first; what is the same in both is left out. A row without a value in one: 0
/// there.
[[nodiscard]] Table plan_difference(const std::vector<PlanCount>& a, const std::vector<PlanCount>& b);

}  // namespace shardscope::gui
