#include "app/gui/views/lane_menu.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/lane_crops.h"
#include "app/gui/views/plot_menu.h"

namespace shardscope::gui {
namespace {

std::string levels_text(int levels) { return std::to_string(levels) + (levels == 1 ? " level" : " levels"); }

}  // namespace

void open_lane_menu(Context& ctx, const TimelineRow& row, std::optional<Rect> anchor) {
  AppState& app = ctx.app;
  LaneCrops& crops = app.timeline.crops;
  const store::LaneId lane = row.lane();
  const std::uint8_t all = app.store().depth_count(lane), shown = levels_shown(crops, lane, all);
  constexpr int kMostListed = 12;
  std::vector<OverlayItem> items;
  items.push_back({all == 1 ? "Its only level" : "All " + levels_text(all), "", all > 1, shown == all,
                   [&app, &crops, lane] { crop(crops, app.store(), lane, 0); }});
  for (int levels = 1; levels < std::min<int>(all, kMostListed); ++levels)
    items.push_back(
        {levels == 1 ? "The outermost level" : "The outer " + levels_text(levels),
         levels == row.depth + 1 && row.depth > 0 ? "down to this row" : "", true, shown == levels,
         [&app, &crops, lane, levels] { crop(crops, app.store(), lane, static_cast<std::uint8_t>(levels)); },
         levels == 1});
  if (app.store().ranks().size() > 1)
    items.push_back({"The same on every rank", "", all > 1, false,
                     [&app, &crops, lane, levels = shown == all ? std::uint8_t{0} : shown] {
                       crop_everywhere(crops, app.store(), lane.stream, levels);
                     },
                     true});
  items.push_back({"All levels of every lane", "", !crops.empty(), false, [&crops] { crops.clear(); },
                   app.store().ranks().size() <= 1});
  ctx.menu(anchor.value_or(at_pointer(ctx)), std::move(items));
}

void draw_lane_name(Context& ctx, const TimelineRow& row, const Rect& gutter) {
  const Palette& c = ctx.colors();
  Rect text{gutter.x + 22, gutter.y, gutter.w - 26, gutter.h};
  if (row.cropped > 0) {
    // A number with a mark: that something is hidden must be seen beside what is shown.
    const std::string hidden = "+" + std::to_string(row.cropped);
    const Rect place = text.take_right(ctx.canvas.width(hidden, Font::mono_small) + 8);
    const bool over = ctx.hovered(place);
    ctx.canvas.fill({place.x, place.y + 1, place.w, place.h - 2}, over ? c.accent : c.raised, 1, 3);
    ctx.canvas.text_in(place.inset(4, 0), hidden, over ? text_on(c.accent) : c.warning, Font::mono_small,
                       Align::right);
    if (over)
      ctx.tip(std::to_string(row.cropped) + (row.cropped == 1 ? " deeper level" : " deeper levels") +
              " of this lane hidden. Click: show all. Right button: another number");
    if (ctx.clicked(place)) crop(ctx.app.timeline.crops, ctx.app.store(), row.lane(), 0);
    text.take_right(4);
  }
  ctx.canvas.text_in(text, row.label(), c.muted, Font::small);
  if (ctx.hovered(gutter) && ctx.pointer.released[1]) open_lane_menu(ctx, row);
}

}  // namespace shardscope::gui
