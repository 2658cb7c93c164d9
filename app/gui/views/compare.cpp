// Compare: two runs side by side: figures, modules, collectives and settings as tables, a step of both on one
// scale, step times, and a verdict with its statistical support.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "app/gui/model/aligned_phases.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/curve.h"
#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/recent.h"
#include "app/gui/views/aligned_steps.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kModuleSteps = 5;
/// For parameters: enough steps for intervals, few enough to read in a frame.
constexpr std::size_t kParamSteps = 32;

enum class Shown : std::uint8_t { figures, phases, modules, parameters, collectives, memory, settings };
constexpr std::size_t kTables = 7;

class CompareView final : public View {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view title() const override { return "Compare"; }
  bool analysed() const override { return true; }
  std::vector<Choice> choices(const AppState& app) override;
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void names(Context& ctx, Rect& room) const;
  void verdict(Context& ctx, Rect& room) const;
  void tables(Context& ctx, Rect room);
  void figures(Context& ctx, const Rect& room);
  void steps(Context& ctx, Rect room);
  static void nothing_to_compare(Context& ctx, Rect room);

  analysis::Comparison comparison_;
  std::shared_ptr<const Analysis> of_a_, of_b_;  ///< analyses of which it is made
  Shown shown_ = Shown::figures;
  std::array<Table, kTables> tables_;
  std::array<bool, kTables> made_{};
  std::array<TableState, kTables> states_;
  AlignedSteps aligned_;
  std::optional<Interval> interval_;  ///< difference of step times, ms
};

std::string run_name(const Session& run) {
  const std::size_t slash = run.source().rfind('/');
  return slash == std::string::npos ? run.source() : run.source().substr(slash + 1);
}

void CompareView::header(Context& ctx, Rect& room) {
  if (!ctx.app.other) return;
  if (ctx.button_right(room, "Swap A and B", true, Context::Look::plain,
                       "Show the other run in all panels")) {
    ctx.app.swap_runs();
    of_a_.reset();
  }
}

std::vector<Choice> CompareView::choices(const AppState& app) {
  if (!app.other) return {};
  return {{"table",
           {"figures", "phases", "modules", "parameters", "collectives", "memory", "settings"},
           static_cast<int>(shown_),
           [this](AppState&, int to) { shown_ = static_cast<Shown>(to); }}};
}

void CompareView::names(Context& ctx, Rect& room) const {
  const Palette& c = ctx.colors();
  for (std::size_t i = 0; i < 2; ++i) {
    const Session& run = i == 0 ? *ctx.app.run : *ctx.app.other;
    Rect line = room.take_top(22);
    const Rect mark = line.take_left(36);
    ctx.canvas.fill({mark.x, mark.y + 5, 12, 12}, c.runs[i], 1, 2);
    ctx.canvas.text_in({mark.x + 18, mark.y, 18, mark.h}, i == 0 ? "A" : "B", c.text, Font::strong);
    const Identity who = identify(run.store());
    std::string facts = who.model;
    for (const std::string& fact : who.facts) facts += ", " + fact;
    if (!who.link.empty()) facts += ", " + who.link;
    const std::string name = run_name(run);
    ctx.canvas.text_in(line.take_left(std::min(line.w * 0.5F, ctx.canvas.width(name, Font::body) + 12)), name,
                       c.text);
    ctx.canvas.text_in(line, facts, c.muted, Font::small);
  }
  room.take_top(6);
}

void CompareView::verdict(Context& ctx, Rect& room) const {
  const Palette& c = ctx.colors();
  std::string text = comparison_.verdict;
  if (interval_) {
    text += " The difference of the median step times lies between " + decimal(interval_->low, 2) + " and " +
            decimal(interval_->high, 2) + " ms (95 %).";
  }
  const float h = ctx.canvas.paragraph_height(room.w - 28, text, Font::body) + 16;
  const Rect box = room.take_top(std::min(h, room.h));
  ctx.canvas.fill(box, c.accent, 0.12F, 3);
  ctx.canvas.fill({box.x, box.y, 4, box.h}, c.accent, 1, 2);
  ctx.canvas.paragraph({box.x + 16, box.y + 8, box.w - 28, box.h - 8}, text, c.text);
  room.take_top(8);
}

/// The change is a bar from the middle: left for less, right for more.
void CompareView::figures(Context& ctx, const Rect& room) {
  const Palette& c = ctx.colors();
  TableOptions options;
  options.row_height = 26;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    const auto change = change_of(comparison_.metrics[row]);
    if (column != 3 || !change) return false;
    const Rgb color = change->in_spread || change->value == 0 ? c.muted
                      : change->better                        ? c.of(Meaning::gather)
                                                              : c.of(Meaning::trouble);
    const float half = std::max(0.0F, (cell.w - 92) / 2);
    const float middle = cell.x + half;
    const auto length = static_cast<float>(std::clamp(change->value / 100, -1.0, 1.0)) * half;
    ctx.canvas.vertical(middle, cell.y + 5, cell.h - 10, c.line);
    const Rect fill{std::min(middle, middle + length), cell.y + 8, std::fabs(length), cell.h - 16};
    ctx.canvas.fill(fill, color, 0.9F);
    if (!change->better && !change->in_spread) ctx.canvas.hatch(fill, c.panel, 0.4F, 5);
    ctx.canvas.text_in({cell.right() - 92, cell.y, 92, cell.h}, change->text,
                       change->in_spread ? c.muted : c.text, Font::mono_small, Align::right);
    if (ctx.hovered(cell)) ctx.tip(tables_[0].rows[row][3].tip);
    return true;
  };
  draw_table(ctx, "##compared figures", room, tables_[0], states_[0], options);
}

void CompareView::tables(Context& ctx, Rect room) {
  const auto which = static_cast<std::size_t>(shown_);
  AppState& app = ctx.app;
  if (!made_[which]) {
    made_[which] = true;
    tables_[which] = shown_ == Shown::figures   ? metric_table(comparison_)
                     : shown_ == Shown::phases  ? phase_table(app.store(), app.other->store(), kModuleSteps)
                     : shown_ == Shown::modules ? module_table(*app.run, *app.other, kModuleSteps)
                     : shown_ == Shown::parameters
                         ? compared_table(*app.run, *app.other, analysis::CompareBy::parameter, kParamSteps)
                     : shown_ == Shown::memory
                         ? compared_table(*app.run, *app.other, analysis::CompareBy::memory, kParamSteps)
                     : shown_ == Shown::collectives ? collective_differences(*app.run, *app.other)
                                                    : setting_table(comparison_.config_changes);
  }
  if (shown_ == Shown::figures) {
    figures(ctx, room);
    return;
  }
  if (tables_[which].rows.empty()) {
    ctx.canvas.text_in(
        room.take_top(22),
        shown_ == Shown::settings  ? "The configurations are the same."
        : shown_ == Shown::phases  ? "Phases were not recorded in either run."
        : shown_ == Shown::modules ? "Modules were not recorded in either run."
        : shown_ == Shown::parameters
            ? "No status of a parameter was recorded in either run: it takes stage 3 and detail params."
        : shown_ == Shown::memory ? "Memory was not recorded in both runs."
                                  : "Neither run communicated.",
        ctx.colors().muted, Font::small);
    return;
  }
  constexpr std::array kIds{"##figures",
                            "##compared phases",
                            "##compared modules",
                            "##compared parameters",
                            "##compared collectives",
                            "##compared memory",
                            "##compared settings"};
  draw_table(ctx, kIds[which], room, tables_[which], states_[which]);
}

void CompareView::steps(Context& ctx, Rect room) {
  if (room.h < 90) return;
  const Palette& c = ctx.colors();
  const auto steps = ctx.app.store().steps();
  const std::uint32_t first = steps.empty() ? 0 : steps.front().step;
  const std::vector<double>& a = ctx.app.run->summary().step_ms;
  const std::vector<double>& b = ctx.app.other->summary().step_ms;
  const bool distribution = room.w > 420;
  const Rect left = room.take_left(distribution ? (room.w - 24) * 0.55F : room.w);
  StepPlot plot{"Step time", "ms", {{"A", a, c.runs[0]}, {"B", b, c.runs[1]}}, first, true, false, 1};
  const int hit = step_plot(ctx, left, plot);
  if (hit >= 0) ctx.app.go_to_step(first + static_cast<std::uint32_t>(hit));
  if (!distribution) return;
  room.take_left(24);
  const auto measured = [](const std::vector<double>& values) {
    return values.size() > 1 ? std::vector<double>(values.begin() + 1, values.end()) : values;
  };
  distribution_plot(ctx, room,
                    {"Distribution of step times",
                     "ms",
                     {{"A", measured(a), c.runs[0]}, {"B", measured(b), c.runs[1]}},
                     2});
}

/// Buttons to open a second run.
void CompareView::nothing_to_compare(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const float top = std::max(90.0F, room.h * 0.45F);
  ctx.empty(room.take_top(std::min(top, room.h)), "One run is open",
            "A second one is set beside it here. `shardscope ab` makes a pair, and the What-if panel plays "
            "this run with other settings.");
  if (room.h < 30) return;
  Rect line = room.take_top(26);
  const float width = ctx.button_width("Open a second run") + ctx.button_width("What if") + 8;
  line.take_left(std::max(0.0F, (line.w - width) / 2));
  if (ctx.button(line.take_left(ctx.button_width("Open a second run")), "Open a second run", true,
                 Context::Look::primary, "Choose a recording (Ctrl+Shift+O)"))
    ctx.ui.open(Dialog::open_second);
  line.take_left(8);
  if (ctx.button(line.take_left(ctx.button_width("What if")), "What if", true, Context::Look::plain,
                 "Play this run with other settings and open the result here"))
    ctx.ui.show_panel = "whatif";
  if (ctx.ui.recent == nullptr) return;
  room.take_top(10);
  std::size_t shown = 0;
  for (const std::string& file : ctx.ui.recent->files) {
    if (file == app.run->source() || room.h < 24 || shown++ == 6) continue;
    const Rect row = room.take_top(22);
    const std::size_t slash = file.rfind('/');
    const std::string name = "Compare with " + (slash == std::string::npos ? file : file.substr(slash + 1));
    const float w = std::min(row.w, ctx.canvas.width(name, Font::small) + 2);
    const Rect place{row.x + (row.w - w) / 2, row.y, w, row.h};
    ctx.canvas.text_in(place, name, ctx.colors().accent, Font::small);
    if (!ctx.hovered(place)) continue;
    ctx.canvas.horizontal(place.x, place.bottom() - 3, place.w, ctx.colors().accent);
    ctx.tip(file);
    if (ctx.pointer.pressed[0]) app.open_request = {file, {}, true};
  }
}

void CompareView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.other) {
    nothing_to_compare(ctx, room);
    return;
  }
  const std::string of_a = app.run->partial();
  const std::string of_b = app.other->partial();
  if (!of_a.empty() || !of_b.empty()) {
    ctx.empty(
        room, "The comparison appears when both runs are analysed",
        "A: " + (of_a.empty() ? "analysed" : of_a) + ". B: " + (of_b.empty() ? "analysed" : of_b) + ".");
    return;
  }
  if (of_a_ != app.run->analysis() || of_b_ != app.other->analysis()) {
    of_a_ = app.run->analysis();
    of_b_ = app.other->analysis();
    comparison_ = analysis::compare({{&app.store(), &of_a_->summary, of_a_->digest.get()}},
                                    {{&app.other->store(), &of_b_->summary, of_b_->digest.get()}});
    made_ = {};
    const auto measured = [](const std::vector<double>& values) {
      return finite(std::span(values).subspan(values.size() > 1 ? 1 : 0));
    };
    interval_ = median_difference(measured(of_a_->summary.step_ms), measured(of_b_->summary.step_ms));
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  names(ctx, room);
  verdict(ctx, room);
  if (room.h > 420) {
    steps(ctx, room.take_bottom(std::clamp(room.h * 0.22F, 130.0F, 220.0F)));
    room.take_bottom(8);
    if (AlignedSteps::can_draw(app)) {
      aligned_.draw(ctx, room.take_bottom(std::clamp(room.h * 0.46F, 120.0F, 340.0F)));
      room.take_bottom(4);
    }
  } else if (room.h > 260) {
    steps(ctx, room.take_bottom(room.h * 0.42F));
    room.take_bottom(8);
  }
  tables(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_compare_view() { return std::make_unique<CompareView>(); }

}  // namespace shardscope::gui
