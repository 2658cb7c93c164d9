#include "app/gui/model/rank_pace.h"

#include <algorithm>
#include <vector>

#include "app/gui/model/step_of.h"

namespace shardscope::gui {

RankPace rank_pace(const AppState& app, std::uint32_t rank) {
  RankPace pace;
  const auto steps = app.store().steps();
  const std::optional<std::size_t> shown = measured_step_of(steps, app.now_ns());
  if (!shown) return pace;
  const StepTimes* times = app.run->step_times(steps[*shown].step);
  const auto& analysed = app.run->analysis()->step_times;
  if (times == nullptr && app.run->live() && !app.cursor_ns && !analysed.empty())
    times = analysed.back().get();
  if (times == nullptr) return pace;
  pace.step = times->step;
  std::vector<std::int64_t> busy;
  for (const StepTimes::Rank& one : times->ranks) {
    busy.push_back(one.time.compute_ns);
    if (one.rank == rank) pace.busy_ns = busy.back();
  }
  std::nth_element(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(busy.size() / 2), busy.end());
  const std::int64_t median = busy.empty() ? 0 : busy[busy.size() / 2];
  pace.straggler = busy.size() > 1 && static_cast<double>(pace.busy_ns) > 1.25 * static_cast<double>(median);
  return pace;
}

}  // namespace shardscope::gui
