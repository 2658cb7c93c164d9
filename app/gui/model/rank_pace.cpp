#include "app/gui/model/rank_pace.h"

#include <algorithm>
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

RankPaces::RankPaces(const AppState& app) : times_(step_shown(app)) {
  if (times_ == nullptr) return;
  std::vector<double> busy;
  for (const StepTimes::Rank& one : times_->ranks) {
    busy.push_back(static_cast<double>(one.time.compute_ns));
    longest_ns_ = std::max(longest_ns_, one.time.compute_ns);
  }
  // The findings' median: of two ranks it lies between them, so that either can be out of line.
  if (busy.size() > 1) median_ns_ = analysis::quantile(busy, 0.5);
}

RankPace RankPaces::of(std::uint32_t rank) const {
  RankPace pace;
  if (times_ == nullptr) return pace;
  pace.step = times_->step;
  // Most often every rank has a row.
  auto found =
      times_->ranks.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(rank, times_->ranks.size()));
  if (found == times_->ranks.end() || found->rank != rank)
    found = std::ranges::find(times_->ranks, rank, &StepTimes::Rank::rank);
  if (found != times_->ranks.end()) pace.busy_ns = found->time.compute_ns;
  pace.straggler = median_ns_ > 0 && static_cast<double>(pace.busy_ns) >= 1.25 * median_ns_;
  return pace;
}

RankPace rank_pace(const AppState& app, std::uint32_t rank) { return RankPaces(app).of(rank); }

}  // namespace shardscope::gui
