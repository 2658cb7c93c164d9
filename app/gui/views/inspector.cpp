// Inspector: details and history of the selection.
#include <algorithm>

#include "app/gui/model/finder.h"
#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/timeline_menu.h"

namespace shardscope::gui {
namespace {

/// A list that scrolls within `place`. `draw(item, row, over)` draws an item in its row, `over` with the
/// pointer on it; false ends the list, as a click has changed the selection.
template <typename Item, typename Draw>
void scrolling_list(Context& ctx, const Rect& place, float& scroll, const std::vector<Item>& items,
                    const Draw& draw) {
  ctx.scroll(&scroll, place, kTableRow * static_cast<float>(items.size()), scroll);
  const Clip clip(ctx.canvas, place);
  float y = place.y - scroll;
  for (const Item& item : items) {
    const Rect row{place.x, y, place.w - 10, kTableRow};
    y += kTableRow;
    if (row.bottom() < place.y || row.y > place.bottom()) continue;
    const bool over = ctx.hovered(row) && place.contains(ctx.pointer.x, ctx.pointer.y);
    if (over) ctx.canvas.fill(row, ctx.colors().raised);
    if (!draw(item, row, over)) return;
  }
}

/// Draws a value at the right end of `row`, at most `share` of its width, and removes that width. True:
/// truncated.
bool draw_value(Context& ctx, Rect& row, const std::string& value, float share, Rgb color) {
  const float width = ctx.canvas.width(value, Font::mono_small) + 1;
  const Rect place = row.take_right(std::min(width, row.w * share));
  row.take_right(6);
  return ctx.canvas.text_in(place, value, color, Font::mono_small, Align::right);
}

std::string value_of(const Field& field) {
  return field.unit.empty() ? field.value : field.value + " " + field.unit;
}

/// Width of the label in `row`.
float label_width(Context& ctx, const Field& field, float row) {
  return std::min(ctx.canvas.width(field.label, Font::small) + 8, row * 0.6F);
}

/// Sentences are drawn on lines of their own.
bool has_lines(Context& ctx, const Field& field, float row) {
  const std::string value = value_of(field);
  return value.find(' ') != std::string::npos &&
         ctx.canvas.width(value, Font::mono_small) > row - label_width(ctx, field, row);
}

std::string why_of(const Details& details) { return "Why: " + details.reason; }

/// Height of the fields and the reason, with the gaps between them.
float height_of(Context& ctx, const Details& details, float width) {
  float height = 0;
  for (const Field& field : details.fields) {
    height += kTableRow;
    if (has_lines(ctx, field, width))
      height += ctx.canvas.paragraph_height(width, value_of(field), Font::small) + 4;
  }
  if (!details.reason.empty()) height += 6 + ctx.canvas.paragraph_height(width, why_of(details), Font::small);
  return height;
}

class InspectorView final : public View {
 public:
  std::string_view name() const override { return "inspector"; }
  std::string_view title() const override { return "Inspector"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void fields(Context& ctx, Rect& room, const Details& details);
  void related(Context& ctx, Rect& room, const Details& details);
  void history(Context& ctx, Rect room, const Details& details);
  float fields_scroll_ = 0, scroll_ = 0, related_scroll_ = 0;
  std::string shown_;  ///< title and subtitle: another selection resets scrolling
};

void InspectorView::header(Context& ctx, Rect& room) {
  if (ctx.app.selection.kind == SelectionKind::none) return;
  if (ctx.button_right(room, "Clear", true, Context::Look::plain, "Select nothing (Esc)"))
    ctx.app.clear_selection();
  if (ctx.app.selection.kind == SelectionKind::param) {
    const bool shown = follows_selected(ctx);
    if (ctx.button_right(room, shown ? "On the timeline" : "Show on timeline", true,
                         shown ? Context::Look::chosen : Context::Look::plain,
                         "Where this parameter is on every rank over time, as bands above the ranks"))
      follow_selected(ctx);
  }
  if (ctx.button_right(room, "Find all like it", true, Context::Look::plain,
                       "Every span of this name, on all ranks, with count, percentiles and a histogram "
                       "(Ctrl+Shift+F)") &&
      find_selection(ctx.app))
    ctx.ui.show_panel = "find";
}

void InspectorView::draw(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const Details details = describe_selection(ctx.app);
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  if (details.title.empty()) {
    ctx.empty({room.x - 12, room.y, room.w + 24, room.h}, "Nothing is selected",
              "Click a span in the timeline, a parameter in the partition map, a rank or a step. It is then "
              "marked in every panel.");
    return;
  }
  const Rect title = room.take_top(20);
  ctx.canvas.fill({title.x, title.y + 3, 4, 14}, c.of(details.meaning), 1, 1);
  const Rect name{title.x + 10, title.y, title.w - 10, title.h};
  if (ctx.canvas.text_in(name, details.title, c.text, Font::strong) && ctx.hovered(name))
    ctx.tip(details.title);
  if (!details.subtitle.empty()) {
    const Rect line = room.take_top(18);
    ctx.canvas.text_in({line.x + 10, line.y, line.w - 10, line.h}, details.subtitle, c.muted, Font::small);
  }
  room.take_top(6);
  // A small panel reserves room for related spans and the begin of the history, which no other panel
  // lists.
  const auto list_height = [](std::size_t rows) {
    return rows == 0 ? 0 : kTableRow * static_cast<float>(rows) + 34;
  };
  const float related_height = list_height(details.related.size());
  const float history_height = list_height(details.history.size());
  const float least = std::min(related_height + std::min(history_height, list_height(2)), room.h * 0.45F);
  const float spare = room.h - height_of(ctx, details, room.w);
  const Rect below = room.take_bottom(std::min(related_height + history_height, std::max(spare, least)));
  fields(ctx, room, details);
  room.h += below.h;
  if (!details.related.empty()) {
    related(ctx, room, details);
  }
  if (!details.history.empty() && room.h > 2 * kTableRow) history(ctx, room, details);
}

/// Draws the fields; they scroll if they do not fit.
void InspectorView::fields(Context& ctx, Rect& room, const Details& details) {
  const Palette& c = ctx.colors();
  if (const std::string shown = details.title + details.subtitle; shown != shown_) {
    shown_ = shown;
    fields_scroll_ = 0;
  }
  const bool fits = height_of(ctx, details, room.w) <= room.h;
  const float width = fits ? room.w : room.w - 10;
  const float all = height_of(ctx, details, width);
  const Rect place = room.take_top(std::min(all, room.h));
  ctx.scroll(&fields_scroll_, place, all, fields_scroll_);
  const Clip clip(ctx.canvas, place);
  Rect rest{place.x, place.y - fields_scroll_, width, all};
  for (const Field& field : details.fields) {
    Rect row = rest.take_top(kTableRow);
    const Rect whole = row;
    const bool lines = has_lines(ctx, field, row.w);
    ctx.canvas.text_in(row.take_left(label_width(ctx, field, row.w)), field.label, c.muted, Font::small);
    const std::string value = value_of(field);
    if (lines) {
      rest.take_top(ctx.canvas.paragraph(rest, value, c.text, Font::small) + 4);
      continue;
    }
    const bool cut = ctx.canvas.text_in(row, value, c.text, Font::mono_small, Align::right);
    if (ctx.hovered(whole) && place.contains(ctx.pointer.x, ctx.pointer.y) && (cut || !field.formula.empty()))
      ctx.tip(field.formula.empty() ? value : field.label + " = " + field.formula);
  }
  if (details.reason.empty()) return;
  rest.take_top(6);
  ctx.canvas.paragraph(rest, why_of(details), c.text, Font::small);
}

/// What the span waits for and what waits for it: the timeline's arrows as a list.
void InspectorView::related(Context& ctx, Rect& room, const Details& details) {
  const Palette& c = ctx.colors();
  ctx.section(room, "Depends on, and what depends on it");
  const float all = kTableRow * static_cast<float>(details.related.size());
  const Rect place = room.take_top(std::min(all, details.history.empty() ? room.h : room.h * 0.5F));
  scrolling_list(
      ctx, place, related_scroll_, details.related, [&](const RelatedRow& item, Rect row, bool over) {
        draw_value(ctx, row, item.value, 0.4F, c.muted);
        ctx.canvas.text_in(row, item.text, c.text, Font::small);
        if (!over) return true;
        ctx.tip(
            item.text +
            "\nClick: go there. The time is from the end of the first to the start of the dependent one.");
        if (!ctx.pointer.pressed[0]) return true;
        ctx.app.select_span(item.lane, item.span);
        ctx.app.show_rank(item.lane.rank);
        ctx.app.jump_to(item.span.begin_ns);
        return false;
      });
}

void InspectorView::history(Context& ctx, Rect room, const Details& details) {
  const Palette& c = ctx.colors();
  ctx.section(room, details.history_title);
  scrolling_list(ctx, room, scroll_, details.history, [&](const HistoryRow& item, Rect row, bool over) {
    if (item.at_ns) {
      ctx.canvas.text_in(row.take_left(std::min(76.0F, row.w * 0.35F)), timestamp(*item.at_ns, 100'000),
                         c.muted, Font::mono_small);
    }
    const bool value_cut = draw_value(ctx, row, item.value, 0.5F, c.text);
    const bool text_cut = ctx.canvas.text_in(row, item.text, c.text, Font::small);
    if (over && (text_cut || value_cut)) ctx.tip(item.text + ": " + item.value);
    if (!over || !ctx.pointer.pressed[0]) return true;
    if (item.at_ns) ctx.app.jump_to(*item.at_ns);
    if (item.param == ev::kNoId) return true;
    const std::uint32_t rank = ctx.app.selection.rank;
    ctx.app.select_param(item.param, rank);
    return false;
  });
}

}  // namespace

std::unique_ptr<View> make_inspector_view() { return std::make_unique<InspectorView>(); }

}  // namespace shardscope::gui
