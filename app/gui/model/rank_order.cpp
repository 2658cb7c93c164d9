#include "app/gui/model/rank_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "app/analysis/slow_rank.h"
#include "app/gui/model/own_order.h"
#include "app/gui/model/rank_filter.h"
#include "app/gui/model/rank_pace.h"

namespace shardscope::gui {

const char* word(RankOrder order) noexcept {
  switch (order) {
    case RankOrder::number:
      return "rank";
    case RankOrder::computation:
      return "computation";
    case RankOrder::exposed:
      return "exposed communication";
    case RankOrder::own:
      return "own order";
  }
  return "";
}

const char* word(RankHeight height) noexcept {
  switch (height) {
    case RankHeight::automatic:
      return "low rows where ranks do not fit";
    case RankHeight::full:
      return "full rows";
    case RankHeight::heat:
      return "low rows";
  }
  return "";
}

std::vector<std::uint32_t> rank_order(const AppState& app) {
  const RankOrder order = app.timeline.order;
  if (order == RankOrder::number) return {};
  if (order == RankOrder::own) return own_order_of(app);
  const StepTimes* const times = step_shown(app);
  std::map<std::uint32_t, std::int64_t> key;
  if (times != nullptr) {
    for (const StepTimes::Rank& one : times->ranks) {
      if (one.time.known())
        key[one.rank] = order == RankOrder::computation ? one.time.compute_ns : one.time.exposed_comm_ns;
    }
  }
  std::vector<std::uint32_t> out;
  for (const store::RankRow& rank : app.store().ranks()) out.push_back(rank.rank);
  std::ranges::stable_sort(out, std::ranges::greater{}, [&](std::uint32_t rank) {
    const auto found = key.find(rank);
    return found == key.end() ? std::int64_t{-1} : found->second;
  });
  return out;
}

void arrange_ranks(AppState& app) {
  TimelineOptions& options = app.timeline;
  const store::Store& store = app.store();
  options.groups.clear();
  const std::vector<RankGrouping>& ways = app.groupings.of(app.run->number(), store);
  if (const auto way = std::ranges::find(ways, options.grouping, &RankGrouping::name); way != ways.end()) {
    options.groups = way->groups;
  } else if (options.grouping.empty()) {
    RankGroup& all = options.groups.emplace_back();
    for (const store::RankRow& rank : store.ranks()) all.ranks.push_back(rank.rank);
  }
  order_groups(store, options, rank_order(app));
  options.shown.reset();
  const RankFilter filter = parse_rank_filter(options.filter);
  if (filter.empty()) return;
  options.shown = ranks_of(filter, store, options.groups,
                           filter.slow ? RankPaces(app).slow() : std::set<std::uint32_t>{});
}

std::optional<FilterLine> filter_line(const AppState& app) {
  const RankFilter filter = parse_rank_filter(app.timeline.filter);
  if (!filter.problem.empty()) return FilterLine{filter.problem, true};
  if (!app.timeline.shown) return std::nullopt;
  const bool none = app.timeline.shown->empty();
  std::string text = hidden_text(*app.timeline.shown, app.store().ranks().size());
  if (none && filter.slow)
    text += ": no rank computed " + times_text(analysis::kSlowRank) +
            " the median of the others in most of the last steps";
  return FilterLine{text + ".", none};
}

void order_ranks(AppState& app, RankOrder order) {
  app.timeline.order = order;
  app.timeline_scroll = 0;
}

void group_ranks(AppState& app, const std::string& grouping) {
  app.timeline.grouping = grouping;
  app.timeline_scroll = 0;
}

void next_grouping(AppState& app) {
  const std::vector<RankGrouping>& ways = app.groupings.of(app.run->number(), app.store());
  const auto way = std::ranges::find(ways, app.timeline.grouping, &RankGrouping::name);
  if (way == ways.end())
    group_ranks(app, ways.empty() ? kByNode : ways.front().name);
  else
    group_ranks(app, way + 1 == ways.end() ? "" : (way + 1)->name);
}

}  // namespace shardscope::gui
