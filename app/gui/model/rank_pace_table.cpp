#include "app/gui/model/rank_pace_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardscope::gui {
namespace {

analysis::OthersMedian medians_of(const StepTimes& times) {
  std::vector<double> busy;
  for (const StepTimes::Rank& one : times.ranks) busy.push_back(static_cast<double>(one.time.compute_ns));
  return analysis::OthersMedian(std::move(busy));
}

RankPaceTable made_of(const Analysis& analysis, const StepTimes& shown) {
  RankPaceTable table;
  table.medians = medians_of(shown);
  const auto& all = analysis.step_times;
  const auto after = std::ranges::upper_bound(all, shown.step, {}, [](const auto& one) { return one->step; });
  const auto first = after - std::min<std::ptrdiff_t>(kPaceSteps, after - all.begin());
  for (auto step = first; step != after; ++step) {
    const analysis::OthersMedian medians = medians_of(**step);
    for (const StepTimes::Rank& one : (*step)->ranks) {
      const auto own = static_cast<double>(one.time.compute_ns);
      Slowness& recent = table.recent[one.rank];
      ++recent.of;
      recent.slow += analysis::is_slow(own, medians.without(own).value_or(0)) ? 1U : 0U;
    }
  }
  for (const StepTimes::Rank& one : shown.ranks)
    table.longest_ns = std::max(table.longest_ns, one.time.compute_ns);
  return table;
}

}  // namespace

const RankPaceTable& RankPaceTables::of(const std::shared_ptr<const Analysis>& analysis,
                                        const StepTimes* shown) {
  if (analysis_ != analysis || shown_ != shown) {
    analysis_ = analysis;
    shown_ = shown;
    table_ = shown == nullptr ? RankPaceTable() : made_of(*analysis, *shown);
  }
  return table_;
}

}  // namespace shardscope::gui
