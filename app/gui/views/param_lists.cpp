#include "app/gui/views/param_lists.h"

#include <algorithm>
#include <string>

#include "app/analysis/framework.h"
#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"
#include "app/gui/model/stepping.h"
#include "app/gui/views/rows.h"

namespace shardscope::gui {
namespace {

enum class Which : std::uint8_t { available, others };

/// Marks persistent ones in the list of available parameters.
void list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
          std::int64_t elems, Which which) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  Rect head = room.take_top(18);
  // Two numbers: a comma between them would look like one.
  std::string sum = std::to_string(params.size()) + (params.size() == 1 ? " parameter" : " parameters");
  const std::string elements = " \u00b7 " + count(static_cast<double>(elems)).text() + " elements";
  if (elems > 0 &&
      ctx.canvas.width(title, Font::small) + ctx.canvas.width(sum + elements, Font::mono_small) + 8 < head.w)
    sum += elements;
  // The title must not be truncated in a narrow list.
  if (ctx.canvas.width(title, Font::small) + ctx.canvas.width(sum, Font::mono_small) + 8 > head.w)
    sum = std::to_string(params.size());
  ctx.canvas.text_in(head.take_right(std::min(head.w, ctx.canvas.width(sum, Font::mono_small) + 1)), sum,
                     c.muted, Font::mono_small, Align::right);
  ctx.canvas.text_in(head, title, c.text, Font::small);
  constexpr float kLine = 18;
  const NameCells& names = app.name_cells();
  const auto chosen =
      row_list(ctx, title, room, params.size(), kLine, [&](std::size_t i, const Rect& row, bool over) {
        if (app.selected(params[i])) ctx.canvas.fill(row, mix(c.panel, c.accent, 0.25F));
        const bool persistent =
            which == Which::available && app.store().tables().params[params[i]].persistent;
        Rect text = row.inset(4, 0);
        if (persistent) {
          const Rect mark = text.take_right(12);
          ctx.canvas.disc(mark.x + 6, mark.y + mark.h / 2, 2.5F, c.of(Meaning::gather));
        }
        const std::string name = param_name(app.store(), params[i]);
        const std::string shown = end_of_name(names.without_model(name), [&](std::string_view part) {
          return ctx.canvas.width(part, Font::small) <= text.w;
        });
        ctx.canvas.text_in(text, shown, c.text, Font::small);
        if (over) ctx.tip(describe_param(app, params[i], app.stepper_rank, app.now_ns()));
      });
  if (chosen) app.select_param(params[*chosen], app.stepper_rank);
  if (params.empty()) ctx.canvas.text_in(room.take_top(kLine).inset(4, 0), "none", c.muted, Font::small);
}

}  // namespace

void draw_param_lists(Context& ctx, Rect& room, ParamRoom takes) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.section(room, "Parameters on rank " + std::to_string(app.stepper_rank));
  if (!app.store().has_tables()) {
    ctx.canvas.text_in(room.take_top(kTableRow), "The rank's tables have not arrived.", c.muted, Font::small);
    return;
  }
  if (app.store().tables().stage != 3) {
    ctx.canvas.text_in(room.take_top(kTableRow),
                       analysis::partitioning_name(app.store().tables()) +
                           " keeps every parameter on every rank: nothing is fetched or released.",
                       c.muted, Font::small);
    return;
  }
  const StatusLists lists = status_lists(app.store(), app.stepper_rank, app.now_ns());
  if (!lists.known) {
    ctx.canvas.text_in(room.take_top(kTableRow), not_kept_text(), c.muted, Font::small);
    return;
  }
  std::vector<std::uint32_t> here = lists.available;
  here.insert(here.end(), lists.persistent.begin(), lists.persistent.end());
  const auto total = static_cast<float>(std::max<std::int64_t>(1, app.store().tables().elems));
  Rect bar = room.take_top(14);
  const float available = bar.w * static_cast<float>(lists.available_elems + lists.persistent_elems) / total;
  const float flying = bar.w * static_cast<float>(lists.in_flight_elems) / total;
  ctx.canvas.outline(bar, c.line);
  ctx.canvas.fill({bar.x, bar.y, available, bar.h}, c.of(Meaning::gather));
  const Rect flight{bar.x + available, bar.y, flying, bar.h};
  ctx.canvas.fill(flight, c.of(Meaning::gather), 0.25F);
  ctx.canvas.hatch(flight, c.of(Meaning::gather), 1, 6);
  room.take_top(6);
  Rect columns = room.take_top(takes == ParamRoom::all ? room.h : std::clamp(room.h * 0.36F, 60.0F, 320.0F));
  const float w = (columns.w - 24) / 3;
  list(ctx, columns.take_left(w), "Available", here, lists.available_elems + lists.persistent_elems,
       Which::available);
  columns.take_left(12);
  list(ctx, columns.take_left(w), "In flight", lists.in_flight, lists.in_flight_elems, Which::others);
  columns.take_left(12);
  list(ctx, columns, "Not available", lists.not_available, lists.not_available_elems, Which::others);
}

}  // namespace shardscope::gui
