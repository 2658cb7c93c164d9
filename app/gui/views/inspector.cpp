// Inspector: details and history of the selection.
#include <algorithm>

#include "app/gui/model/finder.h"
#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/rows.h"
#include "app/gui/views/timeline_menu.h"

namespace shardscope::gui {
namespace {

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

/// The fields and the reason.
void fields(Context& ctx, ScrollArea& area, const Details& details) {
  const Palette& c = ctx.colors();
  for (const Field& field : details.fields) {
    Rect row = area.room.take_top(kTableRow);
    const Rect whole = row;
    const bool lines = has_lines(ctx, field, row.w);
    ctx.canvas.text_in(row.take_left(label_width(ctx, field, row.w)), field.label, c.muted, Font::small);
    const std::string value = value_of(field);
    if (lines) {
      area.room.take_top(ctx.canvas.paragraph(area.room, value, c.text, Font::small) + 4);
      continue;
    }
    const bool cut = ctx.canvas.text_in(row, value, c.text, Font::mono_small, Align::right);
    if (ctx.hovered(whole) && (cut || !field.formula.empty()))
      ctx.tip(field.formula.empty() ? value : field.label + " = " + field.formula);
  }
  if (details.reason.empty()) return;
  area.room.take_top(6);
  area.room.take_top(ctx.canvas.paragraph(area.room, "Why: " + details.reason, c.text, Font::small));
}

/// Spans under a title; the timeline's arrows as a list, for instance. True: one was chosen, and is selected
/// now.
bool spans(Context& ctx, ScrollArea& area, std::string_view title, std::string_view tip,
           const std::vector<RelatedRow>& list) {
  if (list.empty()) return false;
  const Palette& c = ctx.colors();
  ctx.section(area.room, title);
  for (const RelatedRow& item : list) {
    Rect row = area.room.take_top(kTableRow);
    const auto [over, chosen] = ctx.row(row, title);
    if (area.shows(row)) {
      draw_value(ctx, row, item.value, 0.4F, c.muted);
      ctx.canvas.text_in(row, item.text, c.text, Font::small);
    }
    if (over) ctx.tip(item.text + "\nClick: go there. " + std::string(tip));
    if (!chosen) continue;
    ctx.app.select_span(item.lane, item.span);
    ctx.app.show_rank(item.lane.rank);
    ctx.app.jump_to(item.span.begin_ns);
    return true;
  }
  return false;
}

/// Events and parameters under a title. True: a parameter was chosen, and is selected now.
bool events(Context& ctx, ScrollArea& area, const std::string& title, const std::vector<HistoryRow>& list) {
  if (list.empty()) return false;
  const Palette& c = ctx.colors();
  ctx.section(area.room, title);
  for (const HistoryRow& item : list) {
    Rect row = area.room.take_top(kTableRow);
    const auto [over, chosen] = ctx.row(row, title);
    if (area.shows(row)) {
      if (item.at_ns) {
        ctx.canvas.text_in(row.take_left(std::min(76.0F, row.w * 0.35F)), timestamp(*item.at_ns, 100'000),
                           c.muted, Font::mono_small);
      }
      const Rgb ink = item.later ? c.muted : c.text;
      const bool value_cut = draw_value(ctx, row, item.value, 0.5F, ink);
      const bool text_cut = ctx.canvas.text_in(row, item.text, ink, Font::small);
      if (over && (text_cut || value_cut || item.later))
        ctx.tip(item.text + ": " + item.value + (item.later ? "\nAfter the time that is looked at." : ""));
    }
    if (!chosen) continue;
    if (item.at_ns) ctx.app.jump_to(*item.at_ns);
    if (item.param == ev::kNoId) continue;
    const std::uint32_t rank = ctx.app.selection.rank;
    ctx.app.select_param(item.param, rank);
    return true;
  }
  return false;
}

class InspectorView final : public View {
 public:
  std::string_view name() const override { return "inspector"; }
  std::string_view title() const override { return "Inspector"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  std::string shown_;  ///< title and subtitle: another selection is shown from its top
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
  ScrollArea area(ctx, "##inspector", room);
  if (const std::string shown = details.title + details.subtitle; shown != shown_) {
    shown_ = shown;
    ScrollArea::scroll_to(0);
  }
  area.room.take_right(4);
  fields(ctx, area, details);
  // The first that is pressed replaces the selection, with which these details are outdated.
  if (spans(ctx, area, "Depends on, and what depends on it",
            "The time is from the end of the first to the start of the dependent one.", details.related) ||
      spans(ctx, area, "Parents", "The time is its duration, without pauses.", details.parents) ||
      events(ctx, area, details.history_title, details.history))
    return;
  events(ctx, area, "Inside it", details.inside);
}

}  // namespace

std::unique_ptr<View> make_inspector_view() { return std::make_unique<InspectorView>(); }

}  // namespace shardscope::gui
