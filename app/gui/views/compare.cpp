// Compare: two runs side by side: figures, modules, collectives and settings as tables, a step of both on one
// scale, step times, and a verdict with its statistical support.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "app/gui/model/compare_tables.h"
#include "app/gui/model/compared_digest.h"
#include "app/gui/model/compared_series.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/recent.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/aligned_steps.h"
#include "app/gui/views/compared_row.h"
#include "app/gui/views/compared_tables.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {
namespace {

/// Of a live run the comparison is made again after so many seconds.
constexpr double kLiveComparison = 2;
/// In a frame, for new steps of a live run.
constexpr auto kDigestTime = std::chrono::milliseconds(2);

class CompareView final : public View {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view title() const override { return "Compare"; }
  RunsOf runs() const override { return RunsOf::both; }
  bool analysed() const override { return true; }
  std::vector<Choice> choices(const AppState& app) override;
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void names(Context& ctx, Rect& room) const;
  void verdict(Context& ctx, Rect& room) const;
  void steps(Context& ctx, Rect room);
  static void nothing_to_compare(Context& ctx, Rect room);
  /// What has the room: in a low panel the picture of a step has too few rows for its inner depths beside the
  /// rest.
  enum class Shows : std::uint8_t { all, picture, table };

  Shows shows_ = Shows::all;
  bool measured_ = true;  ///< while a range is measured, times are of its steps
  analysis::Comparison comparison_;
  std::shared_ptr<const Analysis> of_a_, of_b_;  ///< analyses of which it is made
  ComparedTables tables_;
  AlignedSteps aligned_;
  std::string plotted_;       ///< title of the row whose plots were drawn last
  double compared_at_s_ = 0;  ///< when comparison_ was made
  std::array<ComparedDigest, 2> digests_;
};

std::string run_name(const Session& run) {
  const std::size_t slash = run.source().rfind('/');
  return slash == std::string::npos ? run.source() : run.source().substr(slash + 1);
}

void CompareView::header(Context& ctx, Rect& room) {
  if (!ctx.app.other) return;
  if (ctx.button_right(room, "Swap A and B", true, Context::Look::plain,
                       "Exchange the letters: the difference is then of the other run")) {
    ctx.app.swap_runs();
    of_a_.reset();
  }
  aligned_.rank_menu(ctx, room);
}

std::vector<Choice> CompareView::choices(const AppState& app) {
  if (!app.other) return {};
  std::vector<Choice> out{
      tables_.choice(),
      {"shows", {"all", "picture", "table"}, static_cast<int>(shows_), [this](AppState&, int to) {
         shows_ = static_cast<Shows>(to);
       }}};
  if (app.measured)
    out.push_back(
        {"steps", {"run", "range"}, measured_ ? 1 : 0, [this](AppState&, int to) { measured_ = to == 1; }});
  return out;
}

void CompareView::names(Context& ctx, Rect& room) const {
  const Palette& c = ctx.colors();
  for (std::size_t i = 0; i < 2; ++i) {
    const Session& run = i == 0 ? ctx.app.run_a() : *ctx.app.run_b();
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
  if (!comparison_.metrics.empty() && comparison_.metrics.front().interval)
    text += " Step time, B \u2212 A, 95 % confidence interval: " +
            interval_text(*comparison_.metrics.front().interval, "ms") + ".";
  const float h = ctx.canvas.paragraph_height(room.w - 28, text, Font::body) + 16;
  const Rect box = room.take_top(std::min(h, room.h));
  ctx.canvas.fill(box, c.accent, 0.12F, 3);
  ctx.canvas.fill({box.x, box.y, 4, box.h}, c.accent, 1, 2);
  ctx.canvas.paragraph({box.x + 16, box.y + 8, box.w - 28, box.h - 8}, text, c.text);
  room.take_top(8);
}

void CompareView::steps(Context& ctx, Rect room) {
  if (room.h < 90) return;
  if (const ComparedSeries* const row = tables_.chosen_row()) {
    const std::string title = title_of(*row, NameCells(ctx.app.store()));
    if (std::exchange(plotted_, title) != title) ctx.moving = true;  // plots fit their axes in the next frame
    if (draw_compared_row(ctx, room, *row, title)) tables_.choose_none();
    return;
  }
  plotted_.clear();
  const Palette& c = ctx.colors();
  const auto steps = ctx.app.run_a().store().steps();
  const std::uint32_t first = steps.empty() ? 0 : steps.front().step;
  const std::vector<double>& a = ctx.app.run_a().summary().step_ms;
  const std::vector<double>& b = ctx.app.run_b()->summary().step_ms;
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
  ctx.empty(
      room.take_top(std::min(top, room.h)), "One run is open",
      "Compare it with a second one here. `shardscope ab` makes a pair, and the What-if panel simulates "
      "this run with other settings.");
  if (room.h < 30) return;
  Rect line = room.take_top(26);
  const float width = ctx.button_width("Open a second run") + ctx.button_width("Connect to a live run") +
                      ctx.button_width("What if") + 16;
  line.take_left(std::max(0.0F, (line.w - width) / 2));
  if (ctx.button(line.take_left(ctx.button_width("Open a second run")), "Open a second run", true,
                 Context::Look::primary, "Choose a recording (Ctrl+Shift+O)"))
    ctx.ui.open(Dialog::open_second);
  line.take_left(8);
  if (ctx.button(line.take_left(ctx.button_width("Connect to a live run")), "Connect to a live run", true,
                 Context::Look::plain, "Compare this run with one that is running"))
    ctx.ui.open(Dialog::connect_second);
  line.take_left(8);
  if (ctx.button(line.take_left(ctx.button_width("What if")), "What if", true, Context::Look::plain,
                 "Simulate this run with other settings and open the result here"))
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
    if (ctx.activated(place, file)) app.open_request = {file, {}, true};
    if (!ctx.hovered(place)) continue;
    ctx.canvas.horizontal(place.x, place.bottom() - 3, place.w, ctx.colors().accent);
    ctx.tip(file);
  }
}

void CompareView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.other) {
    nothing_to_compare(ctx, room);
    return;
  }
  for (const Session* run : {app.run.get(), app.other.get()}) {
    if (!run->store().ranks().empty() || !run->live()) continue;
    ctx.empty(
        room, std::string("Waiting for the first events of ") + app.letter_of(*run),
        run->source() + " has sent nothing yet. Another run is opened with File, Compare with live run.");
    return;
  }
  const Session &run_a = app.run_a(), &run_b = *app.run_b();
  const std::string of_a = run_a.partial();
  const std::string of_b = run_b.partial();
  // The analysis of a live run may never catch up: what it has is compared, and the title says how much.
  const auto awaited = [](const Session& run) { return !run.live() || run.analysis()->steps == 0; };
  if ((!of_a.empty() && awaited(run_a)) || (!of_b.empty() && awaited(run_b))) {
    ctx.empty(
        room, "The comparison appears when both runs are analysed",
        "A: " + (of_a.empty() ? "analysed" : of_a) + ". B: " + (of_b.empty() ? "analysed" : of_b) + ".");
    return;
  }
  // A live run has new results in each of its steps.
  const bool whole_a = digests_[0].advance(run_a, kDigestTime),
             whole_b = digests_[1].advance(run_b, kDigestTime);
  if (!whole_a || !whole_b) ctx.moving = true;
  const bool changed = of_a_ != run_a.analysis() || of_b_ != run_b.analysis();
  const auto receives = [](const Session& run) {
    return run.live() && run.link() != collector::Viewer::Link::ended;
  };
  const bool wait = (receives(run_a) || receives(run_b)) && of_a_ && of_b_ &&
                    ctx.seconds < compared_at_s_ + kLiveComparison;
  if (changed && !wait) {
    compared_at_s_ = ctx.seconds;
    of_a_ = run_a.analysis();
    of_b_ = run_b.analysis();
    comparison_ = analysis::compare({{&run_a.store(), &of_a_->summary, digests_[0].get()}},
                                    {{&run_b.store(), &of_b_->summary, digests_[1].get()}});
    tables_.forget();
  }
  const bool of_range = measured_ && app.measured;
  tables_.look_at(aligned_.rank(), of_range,
                  of_range ? steps_within(app.store().steps(), *app.measured) : std::nullopt);
  tables_.prepare(app, comparison_, {digests_[0].get(), digests_[1].get()});
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  names(ctx, room);
  if (shows_ == Shows::picture && AlignedSteps::can_draw(app)) {
    aligned_.draw(ctx, room);
    return;
  }
  verdict(ctx, room);
  if (shows_ == Shows::table) {
    tables_.draw(ctx, room, comparison_);
    return;
  }
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
  tables_.draw(ctx, room, comparison_);
}

}  // namespace

std::unique_ptr<View> make_compare_view() { return std::make_unique<CompareView>(); }

}  // namespace shardscope::gui
