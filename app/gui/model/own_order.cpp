#include "app/gui/model/own_order.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "app/gui/model/app_state.h"
#include "app/gui/model/rank_order.h"

namespace shardscope::gui {
namespace {

constexpr std::string_view kLine = "RankOrder=";
constexpr char kLevels = ';';                                 // before the levels of lanes, after the order
constexpr std::string_view kShown = "own", kAside = "aside";  // aside: another order was shown

/// The group of a rank and its index there; null: not shown.
struct InGroup {
  const RankGroup* group = nullptr;
  std::size_t at = 0;
};
InGroup find_rank(const std::vector<RankGroup>& groups, std::uint32_t rank) {
  for (const RankGroup& group : groups) {
    const auto found = std::ranges::find(group.ranks, rank);
    if (found != group.ranks.end()) return {&group, static_cast<std::size_t>(found - group.ranks.begin())};
  }
  return {};
}

/// Removes and returns the part of `line` before the next tab.
std::string_view take_field(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find('\t'));
  line.remove_prefix(std::min(field.size() + 1, line.size()));
  return field;
}

/// Parses "3,1,0"; empty if invalid or if a rank occurs twice.
std::vector<std::uint32_t> numbers_of(std::string_view text) {
  std::vector<std::uint32_t> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (error != std::errc{} || end != one.data() + one.size()) return {};
    out.push_back(number);
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  std::vector<std::uint32_t> sorted = out;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() ? out : std::vector<std::uint32_t>{};
}

/// The user has moved a rank, or hidden levels of a lane.
bool of_the_user(const RankArrangement& ranks) { return !ranks.own_order.empty() || !ranks.crops.empty(); }

}  // namespace

std::vector<std::uint32_t> own_order_of(const AppState& app) {
  std::vector<std::uint32_t> left;
  for (const store::RankRow& rank : app.store().ranks()) left.push_back(rank.rank);
  std::ranges::sort(left);
  std::vector<bool> taken(left.size(), false);
  std::vector<std::uint32_t> out;
  out.reserve(left.size());
  for (const std::uint32_t rank : app.timeline.own_order) {
    const auto at = std::ranges::lower_bound(left, rank);
    if (at == left.end() || *at != rank) continue;  // saved for a run with more ranks
    const auto index = static_cast<std::size_t>(at - left.begin());
    if (taken[index]) continue;
    taken[index] = true;
    out.push_back(rank);
  }
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!taken[i]) out.push_back(left[i]);
  return out;
}

void order_groups(const store::Store& store, TimelineOptions& options,
                  const std::vector<std::uint32_t>& order) {
  if (order.empty()) return;
  if (options.groups.empty()) options.groups = all_groups(store, options);
  std::vector<std::size_t> place(*std::ranges::max_element(order) + std::size_t{1});
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (RankGroup& group : options.groups)
    std::ranges::sort(group.ranks, {}, [&](std::uint32_t rank) { return place[rank]; });
  if (options.order == RankOrder::own)
    return;  // ranks are moved within a group: the groups keep their places
  std::ranges::sort(options.groups, {}, [&](const RankGroup& group) {
    return group.ranks.empty() ? place.size() : place[group.ranks.front()];
  });
}

bool place_rank(AppState& app, std::uint32_t rank, std::size_t gap) {
  arrange_ranks(app);  // the timeline calls it only while it is drawn
  TimelineOptions& options = app.timeline;
  const std::vector<RankGroup> shown = shown_groups(app.store(), options);
  const auto [group, at] = find_rank(shown, rank);
  if (group == nullptr || gap > group->ranks.size() || gap == at || gap == at + 1) return false;
  // An own order is kept for all groups, also for hidden ranks.
  std::vector<std::uint32_t> order;
  if (options.order == RankOrder::own) {
    order = own_order_of(app);
  } else {
    for (const RankGroup& one : all_groups(app.store(), options))
      order.insert(order.end(), one.ranks.begin(), one.ranks.end());
  }
  std::erase(order, rank);
  // Insert beside a visible rank, whatever hidden ranks are in between.
  const bool last = gap == group->ranks.size();
  const std::uint32_t beside = group->ranks[last ? gap - 1 : gap];
  order.insert(std::ranges::find(order, beside) + (last ? 1 : 0), rank);
  options.order = RankOrder::own;
  options.own_order = std::move(order);
  arrange_ranks(app);
  return true;
}

bool shift_rank(AppState& app, std::uint32_t rank, int places) {
  arrange_ranks(app);
  const std::vector<RankGroup> shown = shown_groups(app.store(), app.timeline);
  const auto [group, at] = find_rank(shown, rank);
  if (group == nullptr) return false;
  const auto last = static_cast<std::ptrdiff_t>(group->ranks.size()) - 1;
  const auto to = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + places, 0,
                                             std::max<std::ptrdiff_t>(last, 0));
  return place_rank(app, rank, static_cast<std::size_t>(to) + (places > 0 ? 1 : 0));
}

std::string move_rank(AppState& app, std::uint32_t rank, int places) {
  arrange_ranks(app);
  const std::string name = "Rank " + std::to_string(rank);
  const std::vector<RankGroup> shown = shown_groups(app.store(), app.timeline);
  const RankGroup* const group = find_rank(shown, rank).group;
  if (group == nullptr && find_rank(all_groups(app.store(), app.timeline), rank).group == nullptr)
    return "The run has no rank " + std::to_string(rank);
  if (group == nullptr) return name + " is hidden by the filter of ranks, so it is not moved";
  app.timeline.closed_nodes.erase(group->title);
  app.rank_to_show = rank;
  if (shift_rank(app, rank, places)) return {};
  const char* const end = places < 0 ? " is the first" : " is the last";
  return name + end + (group->title.empty() ? "" : " of " + group->title + ", and a rank stays in its group");
}

float drag_scroll(float y, float top, float bottom, double seconds) {
  constexpr float kLeast = 240, kMost = 2400;  // px/s
  constexpr float kFaster = 12;                // px/s per px of distance
  constexpr double kFrame = 0.1;               // upper limit in s: frames may be rare before scrolling begins
  const float beyond = y < top ? y - top : std::max(0.0F, y - bottom);
  if (beyond == 0) return 0;
  const float pace = std::min(kLeast + kFaster * std::fabs(beyond), kMost);
  return std::copysign(pace, beyond) * static_cast<float>(std::clamp(seconds, 0.0, kFrame));
}

std::optional<RankDrop> drop_at(const store::Store& store, const TimelineOptions& options,
                                const TimelineRows& rows, std::uint32_t rank, float y) {
  const std::vector<RankGroup> shown = shown_groups(store, options);
  const RankGroup* const group = find_rank(shown, rank).group;
  if (group == nullptr) return std::nullopt;
  RankDrop drop;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < rows.rows.size() && seen < group->ranks.size(); ++i) {
    const TimelineRow& row = rows.rows[i];
    if (row.kind != RowKind::rank || row.rank != group->ranks[seen]) continue;
    std::size_t next = i + 1;
    while (next < rows.rows.size() && rows.rows[next].kind != RowKind::rank &&
           rows.rows[next].kind != RowKind::node)
      ++next;
    const TimelineRow& last = rows.rows[next - 1];
    const float bottom = last.y + last.height + kLaneGap;
    if (seen == 0) drop = {0, row.y};
    ++seen;
    if (y > (row.y + bottom) / 2) drop = {seen, bottom};
  }
  return seen == 0 ? std::nullopt : std::optional(drop);
}

const RankArrangement* KeptOrders::of(const std::string& source) const {
  const auto found = std::ranges::find(orders_, source, &std::pair<std::string, RankArrangement>::first);
  return found == orders_.end() ? nullptr : &found->second;
}

void KeptOrders::put(const std::string& source, const RankArrangement& ranks) {
  std::erase_if(orders_, [&](const auto& one) { return one.first == source; });
  // The settings file separates entries by lines and fields by tabs.
  if (!of_the_user(ranks) || (source + ranks.grouping).find_first_of("\n\r\t") != std::string::npos) return;
  orders_.emplace(orders_.begin(), source, ranks);
  if (orders_.size() > kMost) orders_.resize(kMost);
}

std::vector<std::string> KeptOrders::lines() const {
  std::vector<std::string> out;
  for (const auto& [source, ranks] : orders_) {
    std::string& line = out.emplace_back(kLine);
    line += ranks.order == RankOrder::own ? kShown : kAside;
    line += "\t" + ranks.grouping + "\t";
    for (std::size_t i = 0; i < ranks.own_order.size(); ++i)
      line += (i == 0 ? "" : ",") + std::to_string(ranks.own_order[i]);
    if (!ranks.crops.empty()) line += kLevels + crops_line(ranks.crops);
    line += "\t" + source;
  }
  return out;
}

void KeptOrders::take_line(std::string_view line) {
  if (!line.starts_with(kLine) || orders_.size() >= kMost) return;
  line.remove_prefix(kLine.size());
  const std::string_view shown = take_field(line);
  RankArrangement ranks;
  if (shown != kShown && shown != kAside) return;
  ranks.order = shown == kShown ? RankOrder::own : RankOrder::number;
  ranks.grouping = take_field(line);
  const std::string_view numbers = take_field(line);
  const std::size_t levels = numbers.find(kLevels);
  ranks.own_order = numbers_of(numbers.substr(0, levels));
  if (levels != std::string_view::npos) ranks.crops = crops_from(numbers.substr(levels + 1));
  const std::string source(line);
  if (!of_the_user(ranks) || source.empty() || of(source) != nullptr) return;
  orders_.emplace_back(source, std::move(ranks));
}

bool KeptOrders::follow(AppState& app) {
  if (run_ != app.run->number()) {
    run_ = app.run->number();
    const RankArrangement* const kept = of(kept_as(*app.run));
    had_order_ = kept != nullptr && !kept->own_order.empty();
    if (kept != nullptr && !kept->own_order.empty()) arrange(app.timeline, *kept);
    app.timeline.crops = kept != nullptr ? kept->crops : LaneCrops{};
    last_ = arrangement_of(app.timeline);
    return false;
  }
  const RankArrangement now = arrangement_of(app.timeline);
  if (now == last_) return false;
  // Undoing the first move deletes what was saved since, but never an order saved by an earlier window.
  const bool changes = of_the_user(now) || (!had_order_ && of_the_user(last_)) || now.crops != last_.crops;
  if (changes) put(kept_as(*app.run), now);
  last_ = now;
  return changes;
}

void KeptOrders::note_place(AppState& app, double seconds) const {
  if (run_ == app.run->number()) app.history.note(place_of(app), seconds);
}

std::string kept_as(const Session& run) {
  if (!run.info()) return run.source();
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(run.source(), failed);
  return failed ? run.source() : whole.lexically_normal().string();
}

}  // namespace shardscope::gui
