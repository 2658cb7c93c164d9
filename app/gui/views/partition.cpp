// Partition map: the owner of each element and the gathered parameters; one row per rank.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/block_name.h"
#include "app/gui/model/format.h"
#include "app/gui/model/map_rows.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"
#include "app/gui/model/states_at_time.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/partition_cells.h"
#include "app/gui/views/partition_legend.h"

namespace shardscope::gui {
namespace {

/// Time per frame for reading the states at another time; a rank takes some tenths of a millisecond.
constexpr std::chrono::microseconds kFrameStates{500};
constexpr float kRankGutter = 64;
constexpr float kAxis = 20;
constexpr float kName = 14;        ///< height of a rank's name
constexpr float kCellLabels = 18;  ///< a row as high as this has names in its cells

class PartitionView final : public View {
 public:
  std::string_view name() const override { return "partition"; }
  std::string_view title() const override { return "Partition map"; }
  std::vector<Choice> choices(const AppState& app) override;
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void axis(Context& ctx, const Rect& rect, const ElementAxis& elements);
  void row(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank, bool labels);
  void hover(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank);
  void scroll_to_selected(const MapRows& rows, std::uint32_t rank, float room);
  /// Arrows go to the parameters and ranks beside the selected ones; Enter follows the parameter on the
  /// timeline.
  void keys(Context& ctx, const Rect& map, const MapRows& rows, const ElementAxis& elements);
  [[nodiscard]] float x_of(const Rect& rect, double position) const {
    return rect.x + static_cast<float>((position - shown_.begin) / (shown_.end - shown_.begin)) * rect.w;
  }
  [[nodiscard]] double position_of(const Rect& rect, float x) const {
    return shown_.begin + static_cast<double>((x - rect.x) / rect.w) * (shown_.end - shown_.begin);
  }

  UnitRange shown_;
  PartitionCells cells_;
  float scroll_ = 0;
  std::uint32_t followed_ = ev::kNoId;  ///< the selected rank last scrolled to
  int pan_owner_ = 0;
  StatesAtTime states_;
  std::vector<Rect> marks_;  ///< selected cells of the row being drawn
};

std::vector<Choice> PartitionView::choices(const AppState& app) {
  PartitionStyle& style = cells_.style;
  std::vector<Choice> out{{"layer",
                           {"parameters", "gradients", "optimizer states"},
                           static_cast<int>(style.layer),
                           [&style](AppState&, int to) { style.layer = static_cast<PartitionLayer>(to); }}};
  if (style.layer == PartitionLayer::parameters)
    out.push_back({"coloured by",
                   {"by status", "by owner", "by module", "by age", "by place", "by use"},
                   static_cast<int>(style.colour_by),
                   [&style](AppState&, int to) { style.colour_by = static_cast<ColourBy>(to); }});
  out.push_back({"width of parameters",
                 {"to scale", "widen small"},
                 app.element_scale == ElementScale::linear ? 0 : 1,
                 [](AppState& state, int to) {
                   state.element_scale = to == 0 ? ElementScale::linear : ElementScale::compressed;
                 }});
  return out;
}

void PartitionView::header(Context& ctx, Rect& room) {
  if (ctx.button_right(room, "Fit", true, Context::Look::plain, "Show every parameter"))
    ctx.app.elements = {};
  UnitRange& shown = ctx.app.elements;
  const auto scaled = [&](double factor) { shown.zoom(factor, (shown.begin + shown.end) / 2); };
  const auto moved = [&](double share) { shown.pan(share * (shown.end - shown.begin)); };
  const bool all = shown.begin <= 0 && shown.end >= 1;
  if (ctx.button_right(room, ">", !all && shown.end < 1, Context::Look::plain, "Later parameters"))
    moved(0.25);
  if (ctx.button_right(room, "<", !all && shown.begin > 0, Context::Look::plain, "Earlier parameters"))
    moved(-0.25);
  if (ctx.button_right(room, "-", !all, Context::Look::plain, "Zoom out (the wheel)")) scaled(2);
  if (ctx.button_right(room, "+", true, Context::Look::plain, "Zoom in (the wheel)")) scaled(0.5);
}

void PartitionView::axis(Context& ctx, const Rect& rect, const ElementAxis& elements) {
  const Palette& c = ctx.colors();
  const auto& params = ctx.app.store().tables().params;
  const Clip clip(ctx.canvas, rect);
  const NameCells& names = ctx.app.name_cells();
  std::size_t i = 0;
  while (i < params.size()) {
    const std::string_view group = block_of(params[i].name);
    std::size_t next = i + 1;
    while (next < params.size() && block_of(params[next].name) == group) ++next;
    const float x0 = x_of(rect, elements.begin(static_cast<std::uint32_t>(i)));
    const float x1 = x_of(rect, elements.end(static_cast<std::uint32_t>(next - 1)));
    if (x1 > rect.x && x0 < rect.right()) {
      ctx.canvas.vertical(x0, rect.y + 4, rect.h - 4, c.line);
      const float left = std::max(x0, rect.x);
      const Rect label{left + 4, rect.y, std::min(x1, rect.right()) - left - 8, rect.h};
      const std::string_view text = ctx.canvas.fitting_path(label.w, names.without_model(group), Font::small);
      if (label.w > 12 && ctx.canvas.width(text, Font::small) <= label.w + 0.5F)
        ctx.canvas.text_in(label, text, c.muted, Font::small);
    }
    i = next;
  }
}

void PartitionView::row(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank,
                        bool labels) {
  AppState& app = ctx.app;
  marks_.clear();
  const StatesAtTime::OfRank& of = states_.of(app.store(), rank);
  const bool reading = of.states.size() < elements.size();
  if (reading || !of.known) {
    ctx.canvas.hatch(rect, ctx.colors().muted, 0.3F, 10);
    if (labels)
      ctx.canvas.text_in(rect.inset(6, 0), reading ? std::string("reading") : not_kept_text(),
                         ctx.colors().muted, Font::small);
    return;
  }
  const std::uint32_t first =
      std::min(elements.param_at(shown_.begin), static_cast<std::uint32_t>(elements.size()));
  float painted_to = rect.x - 1;
  for (std::uint32_t param = first; param < elements.size() && elements.begin(param) < shown_.end; ++param) {
    const float x0 = x_of(rect, elements.begin(param));
    const float x1 = x_of(rect, elements.end(param));
    const bool chosen = app.selected(param);
    if (chosen) marks_.push_back({x0 - 1, rect.y - 1, std::max(1.0F, x1 - x0) + 1, rect.h + 2});
    if (x1 < painted_to + 0.5F) continue;
    const float gap = x1 - x0 > 5 ? 1.0F : 0.0F;
    const float left = std::max({x0, painted_to, rect.x - 2000});
    const Rect box{left, rect.y, std::max(1.0F, std::min(x1, rect.right() + 2000) - left - gap), rect.h};
    cells_.draw(ctx, elements, {box, rank, param, of.states[param]});
    if (labels) draw_cell_label(ctx, box, app.store().tables().params[param].name);
    painted_to = x1 - x0 < 1 ? std::floor(x0) + 1 : x1;
  }
  // Cells of the time before, until those of this one are read.
  if (!of.current) ctx.canvas.hatch(rect, ctx.colors().panel, 0.5F, 10);
  // Drawn after all cells, so that neighbours do not cover the marks.
  for (const Rect& mark : marks_) ctx.canvas.outline(mark, ctx.colors().text, 1, 2);
}

void PartitionView::hover(Context& ctx, const Rect& rect, const ElementAxis& elements, std::uint32_t rank) {
  const double position = position_of(rect, ctx.pointer.x);
  const std::uint32_t param = elements.param_at(position);
  if (param == ev::kNoId) return;
  AppState& app = ctx.app;
  Details details = describe_param(app, param, rank, app.now_ns());
  for (const OwnedSlice& slice : elements.owned(rank, param)) {
    details.fields.push_back(
        {"rank " + std::to_string(rank) + " owns",
         grouped(slice.param_offset) + " to " + grouped(slice.param_offset + slice.elems), "", ""});
  }
  if (cells_.style.layer == PartitionLayer::parameters && cells_.style.colour_by == ColourBy::use) {
    if (const analysis::HeldLong* const held = cells_.uses().of(app.store(), rank)) {
      const store::ParamState state = app.store().param_state(rank, param, app.now_ns());
      const ParamUseAt use = param_use(*held, app.store().tables(), param, state, app.now_ns());
      if (const std::string text = text_of(use); !text.empty())
        details.fields.push_back({"use", text, "", ""});
    }
  }
  if (cells_.style.layer == PartitionLayer::gradients) {
    const std::vector<GradientState>& states = cells_.gradients(app, rank);
    if (param < states.size()) {
      const GradientState& state = states[param];
      details.fields.push_back({"gradient", word(words_of(app.store()), state.status), "", ""});
      if (state.bucket != ev::kNoId)
        details.fields.push_back({words_of(app.store()).bucket, std::to_string(state.bucket), "", ""});
      if (state.since_ns > 0)
        details.fields.push_back({"for", duration(app.now_ns() - state.since_ns).text(), "", ""});
    }
  }
  details.fields.push_back(
      {"under the pointer", "element " + grouped(elements.element_at(param, position)), "", ""});
  details.fields.push_back({"double click", "show it on the timeline, of every rank", "", ""});
  ctx.tip(details);
}

/// Scrolls just enough to show the rank's row, once per selected rank: then the user may scroll on.
void PartitionView::scroll_to_selected(const MapRows& rows, std::uint32_t rank, float room) {
  if (std::exchange(followed_, rank) == rank) return;
  if (const MapRow* const row = rows.of(rank))
    scroll_ = std::min(row->y, std::max(scroll_, row->y + row->height - room));
}

void PartitionView::keys(Context& ctx, const Rect& map, const MapRows& rows, const ElementAxis& elements) {
  AppState& app = ctx.app;
  const Context::KeyArea area = ctx.key_area(map, "parameters and ranks");
  if (elements.size() == 0) return;
  if (const Selection& s = app.selection; area.at && s.param < elements.size()) {
    // The middle of the selected cell as far as it is in view.
    const Rect line{map.x, map.y, map.w - 8, map.h};
    const float left = std::max(line.x, x_of(line, elements.begin(s.param))),
                right = std::min(line.right(), x_of(line, elements.end(s.param)));
    if (const MapRow* const row = rows.of(s.rank))
      ctx.ui.key_tip.aim((left + right) / 2, map.y + row->y - scroll_ + row->height / 2);
  }
  if (area.across != 0 || area.down != 0) {
    std::vector<std::uint32_t> ranks;
    for (const MapRow& row : rows.rows)
      if (row.rank != ev::kNoId) ranks.push_back(row.rank);
    const Selection s = app.selection;
    const auto moved = [](std::ptrdiff_t from, int by, std::size_t count) {
      return static_cast<std::size_t>(
          std::clamp<std::ptrdiff_t>(from + by, 0, static_cast<std::ptrdiff_t>(count) - 1));
    };
    const auto found = std::ranges::find(ranks, s.rank);
    const std::uint32_t rank =
        ranks[found == ranks.end() ? 0 : moved(found - ranks.begin(), area.down, ranks.size())];
    const auto param =
        static_cast<std::uint32_t>(s.param == ev::kNoId ? elements.param_at(app.elements.begin)
                                                        : moved(s.param, area.across, elements.size()));
    if (param >= elements.size()) return;
    app.select_param(param, rank);
    const double begin = elements.begin(param), end = elements.end(param);
    UnitRange& shown = app.elements;
    if (begin < shown.begin || end > shown.end) shown.pan((begin + end - shown.begin - shown.end) / 2);
  }
  if (area.chosen && app.selection.param != ev::kNoId) {
    follow_param(app.timeline, app.selection.param);
    app.timeline_scroll = 0;
  }
}

void PartitionView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.store().has_tables() || app.store().tables().params.empty()) {
    const auto [heading, text] = no_partition(app.store());
    ctx.empty(room, heading, text);
    return;
  }
  const Palette& c = ctx.colors();
  const ElementAxis& elements = app.run->elements(app.element_scale);
  shown_ = app.elements;
  const bool by_use =
      cells_.style.layer == PartitionLayer::parameters && cells_.style.colour_by == ColourBy::use;
  const bool by_age =
      cells_.style.layer == PartitionLayer::parameters && cells_.style.colour_by == ColourBy::age;
  if (by_use || by_age) {
    cells_.uses().look_at(app.run->number(), app.store(), app.now_ns());
    if (cells_.uses().reading()) ctx.moving = true;
  }
  room = {room.x + 12, room.y, room.w - 20, room.h};
  Rect legend = room.h > 90 ? room.take_bottom(24) : Rect{};
  Rect top = room.take_top(kAxis);
  top.take_left(kRankGutter);
  axis(ctx, top, elements);
  const MapRows rows = map_rows(app.store(), app.timeline, room.h);
  if (rows.rows.empty()) {
    ctx.empty(room, "No rank passes the filter", "The filter is above the timeline.");
    return;
  }
  if (!legend.empty()) {
    // Below the last row, where the rows do not fill the panel.
    legend.y = std::min(legend.y, room.y + rows.height + 4);
    draw_partition_legend(ctx, legend, cells_);
  }
  const Rect map{room.x + kRankGutter, room.y, room.w - kRankGutter, room.h};
  if (ctx.hovered(map) && !(ctx.pointer.ctrl && ctx.pointer.shift) && ctx.pointer.wheel != 0) {
    app.elements.zoom(std::pow(ctx.pointer.shift ? 0.5 : 0.82, static_cast<double>(ctx.pointer.wheel)),
                      position_of(map, ctx.pointer.x));
    ctx.pointer.wheel = 0;
  }
  scroll_to_selected(rows, app.selection.rank, room.h);
  ctx.scroll("rows", room, rows.height, scroll_);
  const Context::Drag drag =
      ctx.drag(&pan_owner_, {map.x, map.y, map.w - 8, map.h}, 0);  // not on the scroll bar
  if (drag == Context::Drag::going) {
    app.elements.pan(static_cast<double>(-ctx.pointer.dx / map.w) * (shown_.end - shown_.begin));
    scroll_ -= ctx.pointer.dy;
  }
  keys(ctx, map, rows, elements);
  const Clip clip(ctx.canvas, room);
  states_.begin_frame(app.run->number(), app.store(), app.now_ns(), elements.size(),
                      app.run->in_window() ? std::optional(kFrameStates) : std::nullopt);
  float named_until = room.y, chosen_y = -1e9F;  // of the names
  for (const MapRow& of : rows.rows) {
    if (app.selection.kind == SelectionKind::rank && app.selection.rank == of.rank)
      chosen_y = std::floor(room.y + of.y - scroll_) + (of.height - kName) / 2;
  }
  int labelled = 0;  // names in the first row only: all rows have the same columns
  for (const MapRow& of : rows.rows) {
    const Rect line{map.x, std::floor(room.y + of.y - scroll_), map.w - 8, of.height};
    if (line.bottom() < room.y || line.y > room.bottom()) continue;
    const std::uint32_t rank = of.rank;
    if (rank == ev::kNoId) {
      ctx.canvas.text_in({room.x, line.y, room.w - 8, of.height}, of.title, c.muted, Font::small);
      continue;
    }
    const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == rank;
    if (of.named || chosen) {
      float y = line.y + (of.height - kName) / 2;
      // Names are taller than rows of many ranks: those of the first and the last row stay inside.
      if (line.y >= room.y && line.bottom() <= room.bottom())
        y = std::clamp(y, room.y, std::max(room.y, room.bottom() - kName));
      // The name of the first row, which was moved, may reach into the next one's; the chosen one comes
      // first.
      if (chosen || (y >= named_until && (y + kName <= chosen_y || y >= chosen_y + kName))) {
        ctx.canvas.text_in({room.x, y, kRankGutter - 8, kName}, "rank " + std::to_string(rank),
                           chosen ? c.accent : c.text, Font::small);
        named_until = y + kName;
      }
    }
    {
      const Clip inner(ctx.canvas, line);
      row(ctx, line, elements, rank, labelled++ == 0 && of.height >= kCellLabels);
    }
    const bool over =
        line.contains(ctx.pointer.x, ctx.pointer.y) && room.contains(ctx.pointer.x, ctx.pointer.y);
    if (over && ctx.hovered(line)) hover(ctx, line, elements, rank);
    if (over && drag == Context::Drag::clicked) {
      const std::uint32_t param = elements.param_at(position_of(line, ctx.pointer.x));
      if (param != ev::kNoId) app.select_param(param, rank);
    }
    if (over && ctx.pointer.double_click) {
      const std::uint32_t param = elements.param_at(position_of(line, ctx.pointer.x));
      if (param != ev::kNoId) {
        follow_param(app.timeline, param);
        app.timeline_scroll = 0;
      }
    }
  }
  if (states_.behind()) ctx.again_s = 0;  // the next frame reads on
}

}  // namespace

std::unique_ptr<View> make_partition_view() { return std::make_unique<PartitionView>(); }

}  // namespace shardscope::gui
