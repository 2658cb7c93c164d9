#include "app/gui/model/moment_marks.h"

#include <algorithm>

#include "app/analysis/kept.h"
#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {

std::vector<MomentMark> moment_marks(std::span<const store::Moment> moments, const TimeScale& scale) {
  std::vector<MomentMark> out;
  const float left = scale.left, right = scale.left + scale.width;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const store::Moment& moment = moments[i];
    // Includes the end of the range, where the moment that ends a run is.
    const bool shown = moment.at_ns >= scale.range.begin_ns && moment.at_ns <= scale.range.end_ns;
    if (!shown && (moment.begin_ns >= scale.range.end_ns || moment.end_ns <= scale.range.begin_ns)) continue;
    const float x = std::clamp(scale.x_of(moment.at_ns), left, right);
    const float from = std::clamp(scale.x_of(moment.begin_ns), left, right);
    const float to = std::clamp(scale.x_of(moment.end_ns), from, right);
    if (!out.empty() && out.back().shown == shown && x - out.back().x < kTouching) {
      MomentMark& mark = out.back();
      mark.kept_from = std::min(mark.kept_from, from);
      mark.kept_to = std::max(mark.kept_to, to);
      mark.moments.push_back(i);
    } else {
      out.push_back({x, from, to, shown, {i}});
    }
  }
  return out;
}

std::string tip_of(const store::Moment& moment) {
  const std::int64_t fine = std::max<std::int64_t>(1, (moment.end_ns - moment.begin_ns) / 1000);
  return analysis::text_of(moment) + "\nKept around it at full detail: " + timestamp(moment.begin_ns, fine) +
         " to " + timestamp(moment.end_ns, fine);
}

std::string tip_of(std::span<const store::Moment> moments, const MomentMark& mark) {
  constexpr std::size_t kLines = 6;
  std::string out = mark.moments.size() > 1 ? std::to_string(mark.moments.size()) + " moments\n" : "";
  for (std::size_t i = 0; i < std::min(mark.moments.size(), kLines); ++i)
    out += (i == 0 ? "" : "\n") + tip_of(moments[mark.moments[i]]);
  return mark.moments.size() > kLines ? out + "\n..." : out;
}

void go_to_moment(AppState& app, const store::Moment& moment) {
  app.follow = false;
  const std::int64_t end = app.store().end_ns();
  // The kept range may begin after the last event, for example of a run that hangs: show the same length
  // before the run's end.
  const std::int64_t to = std::min(moment.end_ns, end);
  const std::int64_t from = moment.begin_ns < to ? moment.begin_ns : to - (moment.end_ns - moment.begin_ns);
  app.time.go({std::max<std::int64_t>(0, from), to}, end);
  app.set_now(moment.at_ns);
  const auto ranks = app.store().ranks();
  if (std::ranges::find(ranks, moment.rank, &store::RankRow::rank) != ranks.end()) app.show_rank(moment.rank);
}

}  // namespace shardscope::gui
