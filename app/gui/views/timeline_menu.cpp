#include "app/gui/views/timeline_menu.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/slow_rank.h"
#include "app/gui/model/names.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/model/row_curves.h"
#include "app/gui/model/sampled_curves.h"
#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
namespace {

/// Input field for the rank filter; if it does not fit, the command "Filter ranks" opens it.
void filter_field(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  constexpr float kWidth = 124;
  if (app.store().ranks().size() < 2 || room.w < kWidth + 8) return;
  const Rect place = room.take_right(kWidth);
  room.take_right(6);
  const FontScope small(ctx.canvas.fonts(), Font::small);
  ImGui::SetCursorScreenPos({place.x, place.y});
  ImGui::SetNextItemWidth(place.w);
  if (std::exchange(app.timeline.focus_filter, false)) ImGui::SetKeyboardFocusHere();
  if (text_field("##ranks", "ranks: 0-7, slow", app.timeline.filter)) app.timeline_scroll = 0;
  if (ctx.hovered(place))
    ctx.tip(
        "Which ranks are shown: 0-7,17 for numbers, node 2 or a host's name, group 1 for its members, slow "
        "for those that in most of the last steps computed at least " +
        times_text(analysis::kSlowRank) + " the median of the others. Several with commas.");
}

void order_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  std::vector<OverlayItem> items;
  for (const RankOrder order :
       {RankOrder::number, RankOrder::computation, RankOrder::exposed, RankOrder::own})
    items.push_back({word(order), order == RankOrder::own ? "drag a rank" : "",
                     order != RankOrder::own || !app.timeline.own_order.empty(), order == app.timeline.order,
                     [&app, order] { order_ranks(app, order); }});
  const auto group = [&](const std::string& name, const std::string& label, std::size_t groups, bool line) {
    items.push_back({label, groups > 0 ? std::to_string(groups) + " groups" : "", true,
                     app.timeline.grouping == name, [&app, name] { group_ranks(app, name); }, line});
  };
  const std::vector<RankGrouping>& ways = app.groupings.of(app.run->number(), app.store());
  for (const RankGrouping& way : ways)
    group(way.name, "in groups by " + way.name, way.groups.size(), &way == &ways.front());
  if (!ways.empty()) group("", "in no groups", 0, false);
  bool first = true;
  for (const RankHeight height : {RankHeight::automatic, RankHeight::full, RankHeight::heat})
    items.push_back({word(height), "", true, height == app.timeline.rank_height,
                     [&app, height] { app.timeline.rank_height = height; }, std::exchange(first, false)});
  ctx.menu(anchor, std::move(items));
}

void rows_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  std::vector<OverlayItem> items;
  for (int i = 0; i < kRowCounters; ++i) {
    const auto counter = static_cast<RowCounter>(i);
    items.push_back({word(counter), of_all_ranks(counter) ? "all ranks" : "each rank", true,
                     app.timeline.counters.contains(counter),
                     [&app, counter] { toggle(app.timeline, counter); }, counter == RowCounter::loss});
  }
  bool first_sampled = true;
  for (const SampledCounter& counter : sampled_counters(app)) {
    const std::string& name = counter.name;
    items.push_back({name, counter.unit.empty() ? "each rank" : counter.unit + ", each rank", true,
                     app.timeline.sampled.contains(name),
                     [&app, name] { toggle_sampled(app.timeline, name); },
                     std::exchange(first_sampled, false)});
  }
  const std::uint32_t selected = app.selection.param;
  if (selected != ev::kNoId && !follows(app.timeline, selected)) {
    items.push_back({"Statuses of " + param_name(app.store(), selected), "selected", true, false,
                     [&app, selected] {
                       follow_param(app.timeline, selected);
                       app.timeline_scroll = 0;
                     },
                     true});
  }
  bool first = selected == ev::kNoId || follows(app.timeline, selected);
  for (const std::uint32_t param : app.timeline.params) {
    items.push_back({"Statuses of " + param_name(app.store(), param), "", true, true,
                     [&app, param] { unfollow_param(app.timeline, param); }, std::exchange(first, false)});
  }
  ctx.menu(anchor, std::move(items));
}

/// How much of a live run the timeline shows while it follows.
void follow_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  const std::uint32_t now = app.own_length ? 0 : app.timeline.view.followed_steps;
  std::vector<OverlayItem> items;
  items.push_back(
      {"As long as the range is", "zoom sets it", true, now == 0, [&app] { app.follow_newest(0); }});
  std::vector<std::uint32_t> counts{1, 2, 5, 10, 50};
  if (now != 0 && std::ranges::find(counts, now) == counts.end()) counts.push_back(now);
  std::ranges::sort(counts);
  for (const std::uint32_t steps : counts)
    items.push_back(
        {steps == 1 ? std::string("The newest step") : "The newest " + std::to_string(steps) + " steps", "",
         true, now == steps, [&app, steps] { app.follow_newest(steps); }, steps == 1});
  items.push_back(
      {"Another number...", "Options", true, false, [&ui = ctx.ui] { ui.show_panel = "options"; }, true});
  ctx.menu(anchor, std::move(items));
}

}  // namespace

void filter_strip(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const auto line = filter_line(app);
  if (!line) return;
  Rect strip = room.take_top(24);
  ctx.canvas.fill(strip, c.raised);
  strip = {strip.x + 12, strip.y, strip.w - 20, strip.h};
  const Rect button = strip.take_right(ctx.button_width("Show all"));
  if (ctx.button({button.x, button.y + 2, button.w, 20}, "Show all", true, Context::Look::plain,
                 "Every rank again"))
    app.timeline.filter.clear();
  if (ctx.canvas.text_in(strip, line->text, line->problem ? c.of(Meaning::trouble) : c.text, Font::small) &&
      ctx.hovered(strip))
    ctx.tip(line->text);
}

bool follows_selected(const Context& ctx) {
  return ctx.app.selection.param != ev::kNoId && follows(ctx.app.timeline, ctx.app.selection.param);
}

void follow_selected(Context& ctx) {
  const std::uint32_t param = ctx.app.selection.param;
  if (param == ev::kNoId) return;
  if (follows_selected(ctx)) {
    unfollow_param(ctx.app.timeline, param);
    return;
  }
  follow_param(ctx.app.timeline, param);
  ctx.app.timeline_scroll = 0;
  ctx.ui.show_panel = "timeline";
}

void timeline_header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  Rect anchor;
  if (ctx.button_right(room, "Fit", true, Context::Look::plain, "Show the whole run (F)")) app.fit();
  if (app.run->live()) {
    const bool runs = app.run->link() != collector::Viewer::Link::ended;
    if (ctx.button_right(room, app.follow || !runs ? "Follow" : "Not following: resume", true,
                         app.follow ? Context::Look::chosen
                         : runs     ? Context::Look::primary
                                    : Context::Look::plain,
                         "Keep the newest events in view (L). Looking at an earlier time stops it."))
      app.toggle_follow();
    const std::uint32_t steps = app.own_length ? 0 : app.timeline.view.followed_steps;
    const std::string shown = steps == 0   ? "any length"
                              : steps == 1 ? "1 step"
                                           : std::to_string(steps) + " steps";
    if (ctx.menu_button_right(
            room, shown, anchor, runs,
            "How much is in view while following: the newest steps, or a range of any length"))
      follow_menu(ctx, anchor);
  }
  if (ctx.menu_button_right(room, "Rows", anchor, !app.store().ranks().empty(),
                            "Curves over time, and the statuses of parameters that are followed"))
    rows_menu(ctx, anchor);
  const bool own = app.timeline.order == RankOrder::own;
  if (ctx.menu_button_right(
          room, own ? "Own order" : std::string("By ") + word(app.timeline.order), anchor,
          app.store().ranks().size() > 1,
          "Order of the ranks: by number, the longest first in the step that is shown, or your "
          "own (drag a rank, Alt+Up, Alt+Down). Also their grouping and row height"))
    order_menu(ctx, anchor);
  // Name the hidden classes where they are missing.
  if (const std::string hidden = hidden_text(app.timeline.view); !hidden.empty()) {
    if (ctx.button_right(room, hidden, true, Context::Look::chosen,
                         "The timeline does not show these. Click: the options"))
      ctx.ui.show_panel = "options";
  }
  if (const std::string cropped = cropped_text(app.timeline.crops); !cropped.empty()) {
    if (ctx.button_right(room, "hidden: " + cropped, true, Context::Look::chosen,
                         "Chosen in the menus of lanes. Click: show all levels again (Ctrl+Z takes it back)"))
      app.timeline.crops.clear();
  }
  const bool all = app.timeline.expanded.size() == app.store().ranks().size();
  if (ctx.button_right(room, all ? "Collapse ranks" : "Expand ranks", !app.store().ranks().empty())) {
    app.timeline.automatic = false;
    app.timeline.expanded.clear();
    if (!all) {
      for (const store::RankRow& rank : app.store().ranks()) app.timeline.expanded.insert(rank.rank);
    }
  }
  if (ctx.button_right(room, "Slowest", app.store().ranks().size() > 1, Context::Look::plain,
                       "Go to the rank that computed longest in the step that is shown"))
    ctx.ui.say(go_to_slowest(app));
  filter_field(ctx, room);
}

}  // namespace shardscope::gui
