#include "app/gui/views/compared_row.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/gui/model/aligned_phases.h"
#include "app/gui/model/carried_place.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/finder.h"
#include "app/gui/model/labelled_run.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {
namespace {

constexpr float kNarrowestWithDistribution = 420;  ///< pixels

/// The unit of the plots, and the factor that a value is multiplied by.
std::pair<std::string, double> plot_unit(const ComparedSeries& row) {
  const double most = std::max(row.median_a().value_or(0), row.median_b().value_or(0));
  if (row.unit == "ms" && most > 0 && most < 0.1) return {"\u00b5s", 1000};
  if (row.unit == "bytes") return {"MiB", 1.0 / (1024 * 1024)};
  return {row.unit, 1};
}

/// By step from `first` on; NaN in steps without a value.
std::vector<double> by_step(const analysis::ValuesByStep& values, std::uint32_t first, std::uint32_t last,
                            double factor) {
  std::vector<double> out(last - first + 1, NAN);
  for (const auto& [step, value] : values) out[step - first] = value * factor;
  return out;
}

void curves_of_row(Context& ctx, const Rect& room, const ComparedSeries& row, const std::string& title) {
  std::uint32_t first = UINT32_MAX, last = 0;
  for (const analysis::ValuesByStep* values : {&row.a, &row.b}) {
    if (values->empty()) continue;
    first = std::min(first, values->begin()->first);
    last = std::max(last, values->rbegin()->first);
  }
  if (first > last) return;
  const auto [unit, factor] = plot_unit(row);
  const auto& colors = ctx.colors().runs;
  const int hit = step_plot(ctx, room,
                            {title,
                             unit,
                             {{"A", by_step(row.a, first, last, factor), colors[0]},
                              {"B", by_step(row.b, first, last, factor), colors[1]}},
                             first,
                             true,
                             false,
                             2,
                             "difference"});
  if (hit >= 0) ctx.app.go_to_step(first + static_cast<std::uint32_t>(hit));
}

Curve values_of(const char* run, const analysis::ValuesByStep& values, double factor, Rgb color) {
  Curve out{run, {}, color};
  for (const auto& [step, value] : values) out.values.push_back(value * factor);
  return out;
}

/// "39 steps"; of runs that differ "39 (A) and 24 (B) steps".
std::string number_of_steps(const ComparedSeries& row) {
  const std::string a = std::to_string(row.a.size()), b = std::to_string(row.b.size());
  if (a == b) return a + (row.a.size() == 1 ? " step" : " steps");
  return a + " (A) and " + b + " (B) steps";
}

/// As the finder names them; empty: the time that is in no phase, or a parameter, which has no spans.
std::string name_of_spans(const ComparedSeries& row) {
  if (row.name == kOutsideOfPhases) return {};
  if (row.of == SeriesOf::parameter) return {};
  return row.of == SeriesOf::module ? row.name + " " + row.figure : row.name;
}

}  // namespace

bool draw_compared_row(Context& ctx, Rect room, const ComparedSeries& row, const std::string& title) {
  const Palette& c = ctx.colors();
  Rect head = room.take_top(22);
  const bool back = ctx.button_right(head, "Step times", true, Context::Look::plain,
                                     "Show the step times again (or click the row again)");
  const std::string all = name_of_spans(row);
  // Find searches the run that is shown.
  const std::string of = shown_run(ctx.app).letter;
  if (!(ctx.app.shows_b ? row.b : row.a).empty() && !all.empty() &&
      ctx.button_right(head, "Find all", true, Context::Look::plain,
                       "All spans of " + of + " with this name, in Find")) {
    ctx.app.find.find_name(all);
    ctx.ui.show_panel = "find";
  }
  const Rect name = head.take_left(std::min(head.w * 0.5F, ctx.canvas.width(title, Font::strong) + 12));
  ctx.canvas.text_in(name, title, c.text, Font::strong);
  const std::string why_none = why_no_interval(row);
  const Cell interval = interval_cell(row.pairs.interval, row.unit,
                                      "of " + std::to_string(row.pairs.pairs) + " pairs of steps", why_none);
  ctx.canvas.text_in(head, why_none.empty() ? "B \u2212 A: " + interval.tip : "No interval: " + why_none,
                     c.muted, Font::small);
  const bool distribution = room.w > kNarrowestWithDistribution;
  const std::string what = title + (row.unit == "ms" ? " per step" : "");
  curves_of_row(ctx, room.take_left(distribution ? (room.w - 24) * 0.55F : room.w), row, what);
  if (!distribution) return back;
  room.take_left(24);
  const auto [unit, factor] = plot_unit(row);
  distribution_plot(ctx, room,
                    {"Distribution over " + number_of_steps(row),
                     unit,
                     {values_of("A", row.a, factor, c.runs[0]), values_of("B", row.b, factor, c.runs[1])},
                     2});
  return back;
}

void go_to_compared(Context& ctx, SeriesOf of, const ComparedSeries& row,
                    std::optional<std::uint32_t> chosen) {
  AppState& app = ctx.app;
  // What only one run has is shown in that one.
  if (row.a.empty() != row.b.empty()) app.show_run(row.a.empty() ? *app.run_b() : app.run_a());
  const store::Store& store = app.store();
  const auto rank = rank_or_lowest(store, chosen);
  if (!rank) return;
  switch (of) {
    case SeriesOf::module: {
      const auto& modules = store.tables().modules;
      for (std::uint32_t i = 0; i < modules.size(); ++i) {
        if (module_name(store, i) != row.name) continue;
        app.select_module(i, *rank);
        return;
      }
      break;
    }
    case SeriesOf::phase: {
      const auto at = measured_step_of(store.steps(), app.now_ns());
      if (!at || row.name == kOutsideOfPhases) return;
      for (const NamedInterval& phase : phases_of(store, store.steps()[*at], *rank)) {
        if (phase.name != row.name) continue;
        go_to_span(app, {*rank, ev::StreamId::compute}, phase.span);
        return;
      }
      ctx.ui.say("The current step has no " + row.name);
      break;
    }
    case SeriesOf::parameter:
      go_to_compared_param(ctx, row.name, *rank);
      break;
    case SeriesOf::collective:
    case SeriesOf::wait:
    case SeriesOf::kernel:
      // "Find all" shows it: opening the panel here would hide the distribution that the click shows.
      app.find.find_name(row.name);
      break;
  }
}

void go_to_compared_param(Context& ctx, const std::string& name, std::optional<std::uint32_t> chosen) {
  AppState& app = ctx.app;
  std::uint32_t param = param_named(app.store(), name);
  if (param == ev::kNoId && app.other && param_named(app.other->store(), name) != ev::kNoId) {
    app.show_other_run();
    param = param_named(app.store(), name);
  }
  const auto rank = rank_or_lowest(app.store(), chosen);
  if (rank && param != ev::kNoId) app.select_param(param, *rank);
}

}  // namespace shardscope::gui
