// Findings: what is wrong with the run, how much, where to look and what to do about it.
#include <algorithm>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

constexpr float kFindingRow = 42;

class FindingsView final : public View {
 public:
  std::string_view name() const override { return "findings"; }
  std::string_view title() const override { return "Findings"; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  struct Row {
    const analysis::Finding* finding;
    bool of_b;
  };
  void build(const AppState& app);
  bool draw_cell(Context& ctx, std::size_t row, std::size_t column, const Rect& cell) const;
  void detail(Context& ctx, Rect room, const analysis::Finding& finding) const;
  void go_to(Context& ctx, const Row& row) const;

  std::shared_ptr<const Analysis> of_a_, of_b_;  ///< that the table is made from
  bool compared_ = false;
  Table table_;
  std::vector<Row> rows_;
  TableState state_;
  std::size_t chosen_ = 0;
};

Rgb color_of(const Palette& c, ev::Severity severity) {
  return severity == ev::Severity::error     ? c.of(Meaning::trouble)
         : severity == ev::Severity::warning ? c.of(Meaning::reduce)
                                             : c.accent;
}

/// The shape says the severity as well as the colour.
void severity_mark(Canvas& canvas, const Palette& c, ev::Severity severity, float x, float y) {
  const Rgb color = color_of(c, severity);
  if (severity == ev::Severity::info)
    canvas.disc(x, y, 4, color);
  else if (severity == ev::Severity::warning)
    canvas.triangle(x - 5, y + 4, x + 5, y + 4, x, y - 5, color);
  else
    canvas.fill({x - 4, y - 4, 8, 8}, color);
}

void FindingsView::build(const AppState& app) {
  of_a_ = app.run->analysis();
  of_b_ = app.other ? app.other->analysis() : nullptr;
  compared_ = app.other != nullptr;
  table_ = {};
  table_.columns = {{"", 0.05F}, {.name = "finding", .weight = 1, .smallest = 200}};
  table_.columns.push_back({"rank", 0.05F, true});
  table_.columns.push_back({"step", 0.05F, true});
  table_.columns.push_back({"time", 0.05F, true, "Since the run's first event"});
  if (compared_) table_.columns.push_back({"run", 0.08F});
  rows_.clear();
  const auto take = [&](const Session& run, bool of_b) {
    for (const analysis::Finding& finding : run.findings()) {
      rows_.push_back({&finding, of_b});
      const auto step = step_of(run.store(), finding);
      const bool ranked = finding.rank != ev::kNoId;
      table_.add(
          {{severity_word(finding.severity), static_cast<double>(finding.severity), Tone::normal, {}, ""},
           {finding.title, {}, Tone::normal, {}, ""},
           ranked ? number_cell(finding.rank, std::to_string(finding.rank))
                  : Cell{"all", -1.0, Tone::muted, {}, ""},
           step ? number_cell(*step, std::to_string(*step)) : Cell{"all", -1.0, Tone::muted, {}, ""},
           finding.at_ns > 0
               ? number_cell(static_cast<double>(finding.at_ns), timestamp(finding.at_ns, 1'000'000))
               : Cell{"whole run", -1.0, Tone::muted, {}, ""},
           {of_b ? "B" : "A", {}, Tone::normal, {}, ""}});
    }
  };
  take(*app.run, false);
  if (app.other) take(*app.other, true);
  chosen_ = std::min(chosen_, rows_.empty() ? 0 : rows_.size() - 1);
}

bool FindingsView::draw_cell(Context& ctx, std::size_t row, std::size_t column, const Rect& cell) const {
  if (column > 1 && column < 5) return false;
  const Palette& c = ctx.colors();
  const analysis::Finding& finding = *rows_[row].finding;
  if (column == 0) {
    severity_mark(ctx.canvas, c, finding.severity, cell.x + 6, cell.y + 13);
  } else if (column == 5) {
    const Rect mark{cell.x, cell.y + (cell.h - 10) / 2, 10, 10};
    ctx.canvas.fill(mark, c.runs[rows_[row].of_b ? 1 : 0], 1, 2);
    ctx.canvas.text_in({mark.right() + 6, cell.y, cell.w, cell.h}, rows_[row].of_b ? "B" : "A", c.text);
  } else {
    Rect room = cell;
    room.take_top(3);
    ctx.canvas.text_in(room.take_top(18), finding.title, c.text, Font::strong);
    ctx.canvas.text_in(room.take_top(16), finding.evidence, mix(c.muted, c.text, 0.5F), Font::small);
  }
  return true;
}

/// What the row has no room for.
void FindingsView::detail(Context& ctx, Rect room, const analysis::Finding& finding) const {
  const Palette& c = ctx.colors();
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room = {room.x, room.y + 8, room.w, room.h - 8};
  const auto paragraph = [&](const std::string& text, Rgb color, Font font) {
    if (text.empty() || room.h < 14) return;
    room.take_top(ctx.canvas.paragraph({room.x, room.y, room.w, room.h}, text, color, font) + 4);
  };
  paragraph(finding.title, c.text, Font::strong);
  paragraph(finding.evidence, mix(c.muted, c.text, 0.6F), Font::small);
  paragraph(finding.next_step.empty() ? "" : "Next: " + finding.next_step, c.text, Font::small);
}

void FindingsView::go_to(Context& ctx, const Row& row) const {
  if (row.of_b) return;  // the panels show A; "Swap A and B" in Compare shows the other
  ctx.app.show_finding(*row.finding);
  ctx.ui.show_panel = panel_of(*row.finding);
}

void FindingsView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const auto other = app.other ? app.other->analysis() : nullptr;
  if (of_a_ != app.run->analysis() || of_b_ != other || compared_ != (app.other != nullptr)) build(app);
  if (rows_.empty()) {
    const std::string partial = app.run->partial();
    ctx.empty(room,
              app.run->summary().steps == 0 ? "Nothing to judge yet"
              : partial.empty()             ? "Nothing is wrong as far as can be seen"
                                            : "Nothing is wrong so far; " + partial,
              app.run->summary().steps == 0
                  ? "Findings appear after the first completed steps."
                  : "Late prefetches, exposed communication, stragglers, memory above "
                    "the expression and drops would be listed here.");
    return;
  }
  room = {room.x + 8, room.y, room.w - 16, room.h - 6};
  Rect below;
  const analysis::Finding& shown = *rows_[chosen_].finding;
  const float wanted = 34 + ctx.canvas.paragraph_height(room.w, shown.evidence, Font::small) +
                       ctx.canvas.paragraph_height(room.w, "Next: " + shown.next_step, Font::small);
  if (room.h > 150) below = room.take_bottom(std::min(wanted, room.h * 0.5F));
  TableOptions options;
  options.chosen = chosen_;
  options.row_height = kFindingRow;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    return draw_cell(ctx, row, column, cell);
  };
  const TableHit hit = draw_table(ctx, "##findings", room, table_, state_, options);
  if (hit.clicked) {
    chosen_ = *hit.clicked;
    go_to(ctx, rows_[chosen_]);
  }
  if (!below.empty()) detail(ctx, {below.x + 4, below.y, below.w - 8, below.h}, *rows_[chosen_].finding);
}

}  // namespace

std::unique_ptr<View> make_findings_view() { return std::make_unique<FindingsView>(); }

}  // namespace shardscope::gui
