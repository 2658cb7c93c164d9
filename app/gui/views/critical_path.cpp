// Critical path: what bounds a step, the gain without it, and the longest pieces. Shows both runs of a
// comparison, labelled A and B.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/efficiency.h"
#include "app/analysis/missing_reason.h"
#include "app/gui/model/format.h"
#include "app/gui/model/path_tables.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/part_bars.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class CriticalPathView final : public View {
 public:
  std::string_view name() const override { return "critical_path"; }
  std::string_view title() const override { return "Critical path"; }
  RunsOf runs() const override { return RunsOf::both; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  void build(const AppState& app);
  static void step_bar(Context& ctx, Rect& room, const LabelledRun& run, double longest_ms, float text_width);
  void pieces(Context& ctx, Rect room);

  std::vector<LabelledRun> runs_;
  std::shared_ptr<const Analysis> of_shown_, of_other_;  ///< analyses of which the tables are made
  Table parts_;
  PieceTable pieces_;
  TableState parts_state_, pieces_state_;
};

/// Called once per analysis: the tables depend on nothing else.
void CriticalPathView::build(const AppState& app) {
  of_shown_ = app.run->analysis();
  of_other_ = app.other ? app.other->analysis() : nullptr;
  runs_ = labelled_runs(app);
  parts_ = path_table(runs_);
  pieces_ = piece_table(runs_);
}

using analysis::PathPart;

/// Shades distinguish adjacent parts with the same meaning.
Rgb shade_of(const Palette& c, PathPart part) {
  const Rgb own = c.of(meaning_of(part));
  const bool second = part == PathPart::backward || part == PathPart::cpu_optimizer;
  return part == PathPart::compute ? mix(own, c.panel, 0.5F) : second ? mix(own, c.panel, 0.25F) : own;
}

/// As in the bars of ranks' times: exposed, waiting, or not recorded.
bool is_hatched(PathPart part) {
  return part == PathPart::transfer || part == PathPart::copy || part == PathPart::data ||
         part == PathPart::unrecorded;
}

/// Mean length of a step's critical path.
double step_ms(const LabelledRun& run) {
  double whole = 0;
  for (const PathRow& row : path_rows(run.run->summary())) whole += row.ms;
  return whole;
}

std::string step_text(const LabelledRun& run) {
  const analysis::Summary& s = run.run->summary();
  if (!s.critical_path) return {};
  return milliseconds(step_ms(run)).text() + " a step, mean of " +
         grouped(static_cast<std::int64_t>(s.critical_path->steps)) + " of " +
         grouped(static_cast<std::int64_t>(s.steps_measured)) + (s.steps_measured == 1 ? " step" : " steps");
}

/// The step as one bar, both runs on one scale, and the achieved compute rate.
void CriticalPathView::step_bar(Context& ctx, Rect& room, const LabelledRun& run, double longest_ms,
                                float text_width) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = run.run->summary();
  const std::vector<PathRow> rows = path_rows(s);
  if (rows.empty()) return;
  Rect line = room.take_top(26);
  if (*run.letter != 0) {
    const Rect mark = line.take_left(34);
    ctx.canvas.fill({mark.x, mark.y + 8, 10, 10}, c.runs[index_of(run.letter)], 1, 2);
    ctx.canvas.text_in({mark.x + 14, mark.y, 12, mark.h}, run.letter, c.text, Font::strong);
  }
  const double whole = step_ms(run);
  std::vector<Part> parts;
  for (const PathRow& row : rows)
    parts.push_back({analysis::label_of(row.part), row.ms, shade_of(c, row.part), is_hatched(row.part)});
  const Rect text = line.take_right(std::min(line.w * 0.5F, text_width));
  ctx.canvas.text_in(text, step_text(run), c.muted, Font::small, Align::right);
  Rect bar = line.inset(0, 4);
  bar.w *= static_cast<float>(whole / std::max(longest_ms, 1e-9));
  stacked_bar(ctx, bar, parts, whole, [](double ms) { return milliseconds(ms).text(); });
  std::string rate = s.efficiency ? analysis::rate_text(*s.efficiency) : std::string();
  if (rate.empty()) return;
  if (s.energy) rate += "; " + analysis::energy_text(*s.energy);
  const Rect below = room.take_top(20);
  ctx.canvas.text_in(below, rate, c.muted, Font::small);
  if (ctx.hovered(below)) ctx.tip(analysis::flop_text(*s.efficiency));
}

void CriticalPathView::pieces(Context& ctx, Rect room) {
  if (room.h < 60) return;
  ctx.section(room, runs_.size() > 1 ? "Longest pieces; a click shows its run there" : "Longest pieces");
  const TableHit hit = draw_table(ctx, "##pieces", room, pieces_.table, pieces_state_);
  if (!hit.clicked) return;
  const PieceTable::Place& place = pieces_.places[*hit.clicked];
  AppState& app = ctx.app;
  app.show_run(*runs_[place.run].run);
  app.timeline.expanded.insert(place.rank);
  app.select_rank(place.rank);
  const std::int64_t margin = (place.end_ns - place.begin_ns) * 3;
  app.time.go({place.begin_ns - margin, place.end_ns + margin}, app.store().end_ns());
  app.follow = false;
}

void CriticalPathView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const auto other = app.other ? app.other->analysis() : nullptr;
  if (of_shown_ != app.run->analysis() || of_other_ != other || runs_.empty()) build(app);
  if (parts_.rows.empty()) {
    const analysis::Summary& s = app.run->summary();
    ctx.empty(room, "What bounds a step is not known yet",
              s.steps > 0 ? "Of the steps so far: " +
                                analysis::missing_reason(s, "what the ranks computed", ev::Detail::modules,
                                                         ev::Capability::modules) +
                                "."
                          : "The path appears after the first completed steps.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 20, room.h - 8};
  double longest_ms = 0;
  float text_width = 0;
  for (const LabelledRun& run : runs_) {
    longest_ms = std::max(longest_ms, step_ms(run));
    text_width = std::max(text_width, ctx.canvas.width(step_text(run), Font::small) + 12);
  }
  for (const LabelledRun& run : runs_) step_bar(ctx, room, run, longest_ms, text_width);
  room.take_top(6);
  if (room.w > 900) {
    Rect left = room.take_left((room.w - 32) / 2);
    room.take_left(32);
    ctx.section(left, "Parts of a step");
    draw_table(ctx, "##parts", left, parts_, parts_state_);
  } else {
    const float wanted = table_height(parts_);
    draw_table(ctx, "##parts", room.take_top(std::min(wanted, room.h > 200 ? room.h * 0.55F : room.h)),
               parts_, parts_state_);
    room.take_top(8);
  }
  pieces(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_critical_path_view() { return std::make_unique<CriticalPathView>(); }

}  // namespace shardscope::gui
