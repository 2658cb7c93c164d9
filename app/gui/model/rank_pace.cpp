#include "app/gui/model/rank_pace.h"

#include <vector>

#include "app/analysis/statistics.h"
#include "app/gui/model/step_of.h"

namespace shardscope::gui {

const StepTimes* step_shown(const AppState& app) {
  const auto steps = app.store().steps();
  const std::optional<std::size_t> shown = measured_step_of(steps, app.now_ns());
  if (!shown) return nullptr;
  const StepTimes* times = app.run->step_times(steps[*shown].step);
  const auto& analysed = app.run->analysis()->step_times;
  if (times == nullptr && app.run->live() && !app.cursor_ns && !analysed.empty())
    times = analysed.back().get();
  return times;
}

RankPace rank_pace(const AppState& app, std::uint32_t rank) {
  RankPace pace;
  const StepTimes* const times = step_shown(app);
  if (times == nullptr) return pace;
  pace.step = times->step;
  std::vector<double> busy;
  for (const StepTimes::Rank& one : times->ranks) {
    busy.push_back(static_cast<double>(one.time.compute_ns));
    if (one.rank == rank) pace.busy_ns = one.time.compute_ns;
  }
  // The findings' median: of two ranks it lies between them, so that either can be out of line.
  const double median = busy.empty() ? 0 : analysis::quantile(busy, 0.5);
  pace.straggler = busy.size() > 1 && median > 0 && static_cast<double>(pace.busy_ns) >= 1.25 * median;
  return pace;
}

}  // namespace shardscope::gui
