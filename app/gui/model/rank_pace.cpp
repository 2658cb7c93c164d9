#include "app/gui/model/rank_pace.h"

#include <algorithm>
#include <cmath>

#include "app/analysis/missing_reason.h"
#include "app/analysis/why_late.h"
#include "app/gui/model/format.h"
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

RankPaces::RankPaces(const AppState& app)
    : times_(step_shown(app)), table_(&app.paces.of(app.run->analysis(), times_)) {}

std::optional<std::uint32_t> RankPaces::step() const {
  return times_ == nullptr ? std::nullopt : std::optional(times_->step);
}

std::set<std::uint32_t> RankPaces::slow() const {
  std::set<std::uint32_t> out;
  if (times_ == nullptr) return out;
  for (const auto& [rank, recent] : table_->recent)
    if (recent.lasting()) out.insert(rank);
  return out;
}

std::optional<std::uint32_t> RankPaces::slowest() const {
  if (times_ == nullptr || times_->ranks.size() < 2 || longest_ns() <= 0) return std::nullopt;
  return std::ranges::max_element(times_->ranks, {},
                                  [](const StepTimes::Rank& one) { return one.time.compute_ns; })
      ->rank;
}

RankPace RankPaces::of(std::uint32_t rank) const {
  RankPace pace;
  if (times_ == nullptr) return pace;
  pace.step = times_->step;
  // Usually the row's index is the rank.
  auto found =
      times_->ranks.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(rank, times_->ranks.size()));
  if (found == times_->ranks.end() || found->rank != rank)
    found = std::ranges::find(times_->ranks, rank, &StepTimes::Rank::rank);
  if (found != times_->ranks.end()) pace.busy_ns = found->time.compute_ns;
  const auto own = static_cast<double>(pace.busy_ns);
  pace.others_ns = table_->medians.without(own).value_or(0);
  if (const auto recent = table_->recent.find(rank); recent != table_->recent.end())
    pace.recent = recent->second;
  return pace;
}

std::string times_text(double times) { return decimal(times, 2) + " times"; }

std::string pace_text(const RankPace& pace) {
  if (!pace.step || pace.busy_ns == 0) return "";
  std::string out = "It computed " + duration(pace.busy_ns).text() + " in step " + std::to_string(*pace.step);
  if (pace.others_ns > 0)
    out += ", " + times_text(static_cast<double>(pace.busy_ns) / pace.others_ns) +
           " the median of the others (" + duration(std::llround(pace.others_ns)).text() + ")";
  out += ".";
  if (pace.recent.slow > 0)
    out += (pace.recent.of == 1 ? " Slow in the only step that is compared"
                                : " Slow in " + std::to_string(pace.recent.slow) + " of the last " +
                                      std::to_string(pace.recent.of) + " steps") +
           (pace.straggler() ? "."
                             : "; marked where it is in most of them, and in " +
                                   std::to_string(Slowness::kLeastSlowSteps) + " at least.");
  return out;
}

std::string waited_for_text(const AppState& app, std::uint32_t rank) {
  constexpr double kLeastShare = 0.01;  // of the rank's time; the summary uses the same limit
  const auto& ranks = app.run->summary().ranks;
  const auto found = std::ranges::find(ranks, rank, &analysis::RankSummary::rank);
  if (found == ranks.end() || found->time_steps == 0 || found->others_waited_ns <= 0 ||
      static_cast<double>(found->others_waited_ns) < kLeastShare * static_cast<double>(found->time.total_ns))
    return "";
  const auto why = analysis::why_late(app.run->summary(), rank);
  return "The others waited " + duration(found->others_waited_ns).text() + " in all for it: it entered " +
         grouped(static_cast<std::int64_t>(found->entered_last)) +
         (found->entered_last == 1 ? " collective last" : " collectives last") +
         (why ? "; " + analysis::text_of(*why) + "." : ".");
}

/// Why no rank is the slowest of the step that is shown.
std::string why_no_slowest(const AppState& app) {
  if (app.store().ranks().size() < 2) return "there is one rank";
  const auto detail = app.store().recorded_detail();
  if (!detail || *detail < ev::Detail::modules)
    return analysis::missing_reason("spans of computation", ev::Detail::modules, detail);
  return "no step shown is analysed";
}

std::string go_to_slowest(AppState& app) {
  const RankPaces paces(app);
  const auto rank = paces.slowest();
  if (!rank) return "Which rank is the slowest is not known: " + why_no_slowest(app);
  app.select_rank(*rank);
  app.show_rank(*rank);
  return "Rank " + std::to_string(*rank) + " is the slowest. " + pace_text(paces.of(*rank));
}

RankPace rank_pace(const AppState& app, std::uint32_t rank) { return RankPaces(app).of(rank); }

}  // namespace shardscope::gui
