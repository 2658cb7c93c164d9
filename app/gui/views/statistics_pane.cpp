#include "app/gui/views/statistics_pane.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/views/choices.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {
namespace {

constexpr float kFigure = 84, kFigureHeight = 36;

std::string time_text(double ns) { return duration(static_cast<std::int64_t>(std::llround(ns))).text(); }

int time_tick(double value, char* text, int size, void*) {
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", time_text(value).c_str());
}

int count_tick(double value, char* text, int size, void*) {
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", count(value).text().c_str());
}

/// At most `room` round values in [`least`, `most`]: 1, 2 and 5 times powers of ten, powers of ten, or every
/// n-th of those. None so close to the right end that its label would be cut.
std::vector<double> log_ticks(double least, double most, std::size_t room) {
  const double last = most / std::pow(most / least, 0.05);
  for (int stride = 0; stride < 10; ++stride) {
    std::vector<double> out;
    const double factor = std::pow(10, std::max(stride, 1));
    for (double power = std::pow(10, std::floor(std::log10(least))); power <= last; power *= factor) {
      for (const double step : {1.0, 2.0, 5.0}) {
        if (step > 1 && stride > 0) break;
        if (power * step >= least && power * step <= last) out.push_back(power * step);
      }
    }
    if (out.size() <= room) return out;
  }
  return {least};
}

}  // namespace

std::string progress_text(const Finder& find) {
  const SpanSearch& search = find.search;
  const auto number = [](std::uint64_t n) { return grouped(static_cast<std::int64_t>(n)); };
  if (!search.done()) {
    const auto total = search.total();
    return total ? "searched " + number(search.searched()) + " of " + number(*total) + " spans"
                 : std::string("searching");
  }
  const std::size_t hits = find.rows.accepted();
  std::string text = number(hits) + (hits == 1 ? " span" : " spans");
  if (!find.filter.empty()) text += " of " + number(search.hits());
  if (search.cut_short()) text += " " + find.coverage() + ": narrow the words or the range";
  if (!find.by_contents && !find.words.empty())
    text += "; collectives by their names only: the run is long, search the range shown for what they move";
  return text;
}

void StatisticsPane::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  app.find.wanted_next = true;
  found_.refresh(app, ImGui::GetTime());
  if (app.find.statistics.whole().times.count() == 0) {
    if (app.find.search.done() && app.find.statistics.ready())
      ctx.empty(room, "No spans to count", "No span in the range has these words and passes the filter.");
    return;
  }
  // The lists below need the height more than further lines of figures.
  figures(ctx, room, room.h > 260 ? 3 : 1);
  if (room.h > 210) {
    const Rect plot = room.take_top(std::clamp(room.h * 0.38F, 96.0F, 190.0F));
    plots(ctx, plot);
    room.take_top(4);
  } else if (room.h > 90 && room.w > 560) {  // low and wide, as below a timeline: beside the groups
    bars(ctx, room.take_left(room.w * 0.34F));
    room.take_left(8);
  }
  if (room.h > 60) groups(ctx, room);
}

void StatisticsPane::line(Context& ctx, Rect& room) {
  if (ctx.app.find.statistics.whole().times.count() > 0 && room.h > 150) figures(ctx, room, 1);
}

void StatisticsPane::figures(Context& ctx, Rect& room, std::size_t most_lines) {
  const SpanStatistics& statistics = ctx.app.find.statistics;
  const SpanGroup& all = statistics.whole();
  const auto percentile = [&](double ns) {
    return statistics.ready() ? time_text(ns) : std::string(kMissing);
  };
  struct Figure {
    int rank;  ///< importance: with little room the lowest ranks are shown
    const char* name;
    std::string value;
    const char* tip;
  };
  const std::array figures{
      Figure{0, "count", grouped(static_cast<std::int64_t>(all.times.count())), "Spans that were found"},
      Figure{1, "total", time_text(static_cast<double>(all.times.total())),
             "Sum of their times, pauses cut out; nested spans each count"},
      Figure{8, "self", all.parents ? time_text(static_cast<double>(all.self_ns)) : kMissing,
             "Sum of their times without child spans on the same lane; \u2013: none has child spans"},
      Figure{2, "mean", time_text(all.mean()), "total / count"},
      Figure{7, "min", time_text(static_cast<double>(all.times.least())), "The shortest"},
      Figure{3, "p50", percentile(all.p50), "Median: half of them take no longer"},
      Figure{12, "p75", percentile(all.p75), "75 of 100 take no longer; interpolated between two of them"},
      Figure{14, "p90", percentile(all.p90), "90 of 100 take no longer; interpolated between two of them"},
      Figure{4, "p95", percentile(all.p95), "95 of 100 take no longer; interpolated between two of them"},
      Figure{6, "p99", percentile(all.p99), "99 of 100 take no longer; interpolated between two of them"},
      Figure{13, "p99.9", percentile(all.p999),
             "999 of 1 000 take no longer; interpolated between two of them"},
      Figure{5, "max", time_text(static_cast<double>(all.times.most())), "The longest"},
      Figure{9, "sigma", time_text(all.times.sigma()), "Standard deviation: the spread around the mean"},
      Figure{10, "CoV",
             all.mean() > 0 ? decimal(100 * all.times.sigma() / all.mean(), 0) + " %" : std::string(kMissing),
             "Coefficient of variation: sigma / mean"},
      Figure{11, "mode",
             found_.histogram().counts.empty() ? kMissing : time_text(mode_of(found_.histogram())),
             "About the most frequent time: the middle of the histogram's highest bar"}};
  const auto across = static_cast<std::size_t>(std::max(1.0F, std::floor(room.w / kFigure)));
  if (const std::string coverage = ctx.app.find.coverage(); !coverage.empty()) {
    const Rect line = room.take_top(16);
    ctx.canvas.text_in(line, coverage, ctx.colors().warning, Font::small);
    if (ctx.hovered(line))
      ctx.tip(
          "More spans match than are kept. These figures cover those searched first: the first ranks, and "
          "the first part of the last of them. Narrow the words or the range.");
  }
  // Spread the figures evenly over the lines.
  const std::size_t all_lines = (figures.size() + across - 1) / across;
  const std::size_t lines = std::min(all_lines, most_lines);
  const std::size_t per_line =
      lines < all_lines ? std::min(across, figures.size()) : (figures.size() + lines - 1) / lines;
  const float width = room.w / static_cast<float>(per_line);
  const auto shown = static_cast<int>(std::min(figures.size(), lines * per_line));
  Rect row;
  std::size_t placed = 0;
  for (const Figure& figure : figures) {
    if (figure.rank >= shown) continue;
    if (placed++ % per_line == 0) row = room.take_top(kFigureHeight);
    const Rect place = row.take_left(width);
    ctx.canvas.text_in({place.x, place.y, place.w - 6, 16}, figure.name, ctx.colors().muted, Font::small);
    ctx.canvas.text_in({place.x, place.y + 15, place.w - 6, 18}, figure.value, ctx.colors().text, Font::mono);
    if (ctx.hovered(place)) ctx.tip(figure.tip);
  }
  room.take_top(4);
}

/// The histogram, and with room for it the time in each step.
void StatisticsPane::plots(Context& ctx, Rect room) {
  if (room.w > 560) {
    by_step(ctx, room.take_right(room.w * 0.42F));
    room.take_right(12);
  }
  bars(ctx, room);
}

/// Where in the run the time of these spans went. A click goes to the step.
void StatisticsPane::by_step(Context& ctx, const Rect& rect) {
  AppState& app = ctx.app;
  const auto steps = app.store().steps();
  const auto& found = app.find.statistics.by_step();
  if (steps.empty() || found.empty()) {
    ctx.canvas.text_in(rect, "none is in a step", ctx.colors().muted, Font::small, Align::centre);
    return;
  }
  StepPlot plot;
  plot.title = "their total time in each step, all ranks";
  plot.unit = "ms";
  plot.first_step = steps.front().step;
  plot.from_zero = true;
  Curve curve;
  curve.color = ctx.colors().accent;
  for (const store::StepRow& step : steps) {
    const auto at = found.find(step.step);
    curve.values.push_back(at == found.end() ? 0.0 : static_cast<double>(at->second) * 1e-6);
  }
  const double last = curve.values.back();
  plot.digits = last >= 100 ? 0 : last >= 10 ? 1 : last >= 1 ? 2 : 3;
  plot.curves.push_back(std::move(curve));
  const int clicked = step_plot(ctx, rect, plot);
  if (clicked >= 0 && static_cast<std::size_t>(clicked) < steps.size())
    app.go_to_step(steps[static_cast<std::size_t>(clicked)].step);
}

/// What the bars are, and the scale of their times.
void StatisticsPane::title(Context& ctx, Rect line) const {
  if (line.w > 240)
    draw_choices(ctx,
                 {{"scale of the histogram",
                   {"auto", "lin", "log"},
                   static_cast<int>(ctx.app.find.scale),
                   [](AppState& app, int to) { app.find.scale = static_cast<HistogramScale>(to); }}},
                 line);
  ctx.canvas.text_in(line, "spans by their time", ctx.colors().muted, Font::small);
}

void StatisticsPane::bars(Context& ctx, Rect rect) {
  const Palette& c = ctx.colors();
  const TimeHistogram& histogram = found_.histogram();
  if (histogram.counts.empty()) {
    ctx.canvas.text_in(rect, "the histogram appears when the search is complete", c.muted, Font::small,
                       Align::centre);
    return;
  }
  if (rect.h > 100) title(ctx, rect.take_top(22));
  const std::vector<double>& edges = histogram.edges;
  // The first bar of a logarithmic scale may begin at 0: draw it as wide as the second.
  const double least =
      histogram.logarithmic && edges.size() > 2 ? edges[1] * edges[1] / edges[2] : edges.front();
  const std::size_t most = std::ranges::max(histogram.counts);
  if (!begin_plot(ctx, ("##times" + id_).c_str(), rect, ImPlotFlags_NoLegend | ImPlotFlags_NoInputs)) return;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoMenus,
                    ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisLimits(ImAxis_X1, least, edges.back(), ImPlotCond_Always);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, static_cast<double>(most) * 1.2, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, time_tick);
  ImPlot::SetupAxisFormat(ImAxis_Y1, count_tick);
  if (histogram.logarithmic) {
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    const std::vector<double> ticks =
        log_ticks(least, edges.back(), static_cast<std::size_t>(std::max(2.0F, rect.w / 70)));
    ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
  }
  ImPlot::SetupFinish();
  ImPlot::PushPlotClipRect();
  ImDrawList* const list = ImPlot::GetPlotDrawList();
  const ImVec2 at = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  const float ground = at.y + size.y;
  std::optional<std::size_t> over;
  std::vector<Rect> places;
  // Bars of a drag, from where it began to the pointer.
  const Context::Drag drag = ctx.drag(&dragged_from_, {at.x, at.y, size.x, size.y}, 0);
  const bool inside = ctx.hovered({at.x, at.y, size.x, size.y});
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const float x0 = ImPlot::PlotToPixels(std::max(edges[i], least), 0).x;
    const float x1 = ImPlot::PlotToPixels(edges[i + 1], 0).x;
    places.push_back({x0, at.y, std::max(2.0F, x1 - x0), size.y});
    const bool at_pointer = ctx.pointer.x >= x0 && ctx.pointer.x < x1;
    if (at_pointer && (inside || drag != Context::Drag::none)) over = i;
    const float from = std::min(ctx.ui.drag_from_x, ctx.pointer.x),
                to = std::max(ctx.ui.drag_from_x, ctx.pointer.x);
    const bool here = drag == Context::Drag::none ? inside && at_pointer : x1 > from && x0 <= to;
    if (drag == Context::Drag::begun && ctx.pointer.pressed[0] && at_pointer) dragged_from_ = i;
    if (histogram.counts[i] == 0) continue;
    // At least visible, even for one hit among thousands.
    const float top =
        std::min(ground - 2, ImPlot::PlotToPixels(1, static_cast<double>(histogram.counts[i])).y);
    list->AddRectFilled({x0, top}, {std::max(x0 + 1, x1 - 1), ground},
                        ImGui::GetColorU32(ink(c.accent, here ? 1.0F : 0.75F)));
  }
  const SpanGroup& all = ctx.app.find.statistics.whole();
  float written_to = at.x;
  for (const auto& [name, ns] :
       {std::pair("p50", all.p50), std::pair("p95", all.p95), std::pair("p99", all.p99)}) {
    const float x = ImPlot::PlotToPixels(std::max(ns, least), 0).x;
    list->AddLine({x, at.y}, {x, ground}, ImGui::GetColorU32(ink(c.text, 0.55F)));
    // At the left, where the last bars are low; of overlapping labels only the first is drawn.
    const float width = ImGui::CalcTextSize(name).x + 6;
    if (x - width < written_to) continue;
    list->AddText({x - width + 3, at.y}, ImGui::GetColorU32(ink(c.muted)), name);
    written_to = x;
  }
  ImPlot::PopPlotClipRect();
  end_plot(ctx);
  keys(ctx, {at.x, at.y, size.x, size.y}, places);
  if (drag == Context::Drag::dropped || drag == Context::Drag::clicked) {
    // Beyond an end of the plot the drag ends at its last bar.
    const std::size_t last = histogram.counts.size() - 1;
    const std::size_t to = over ? *over : ctx.pointer.x < at.x ? 0 : last;
    const std::size_t from = std::exchange(dragged_from_, std::nullopt).value_or(to);
    if (from != to || histogram.counts[to] > 0) show_only(ctx, from, to);
    return;
  }
  if (drag == Context::Drag::none && over && histogram.counts[*over] > 0) tip_of_bar(ctx, *over);
}

void StatisticsPane::show_only(Context& ctx, std::size_t a_bar, std::size_t b_bar) const {
  ctx.app.find.filter.time_ns = times_of(found_.histogram(), a_bar, b_bar);
}

void StatisticsPane::tip_of_bar(Context& ctx, std::size_t bar) const {
  const TimeHistogram& histogram = found_.histogram();
  ctx.tip(time_text(histogram.edges[bar]) + " to " + time_text(histogram.edges[bar + 1]) + ": " +
          grouped(static_cast<std::int64_t>(histogram.counts[bar])) + " of " +
          grouped(static_cast<std::int64_t>(ctx.app.find.statistics.whole().times.count())) +
          " spans. Click or Enter to show only these, drag or Shift and arrow keys for several bars. The "
          "lines are "
          "p50, p95 and p99.");
}

void StatisticsPane::keys(Context& ctx, const Rect& room, const std::vector<Rect>& places) {
  const Context::KeyArea area = ctx.key_area(room, "histogram");
  if (!area.at || places.empty()) {
    bars_from_.reset();
    return;
  }
  const auto last = std::ssize(places) - 1;
  bar_ = std::min(bar_, places.size() - 1);
  if (area.across != 0) {
    if (!ImGui::GetIO().KeyShift)
      bars_from_.reset();
    else if (!bars_from_)
      bars_from_ = bar_;
    bar_ = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(bar_) + area.across, 0, last));
  }
  const std::size_t from = bars_from_ ? std::min(*bars_from_, places.size() - 1) : bar_;
  for (std::size_t i = std::min(from, bar_); i <= std::max(from, bar_); ++i)
    ctx.canvas.outline(places[i], ctx.colors().text, 1, 1);
  tip_of_bar(ctx, bar_);
  if (area.chosen) show_only(ctx, from, bar_);
}

void StatisticsPane::groups(Context& ctx, Rect room) {
  Finder& find = ctx.app.find;
  Rect head = room.take_top(26);
  const Rect copy = head.take_right(86);
  head.take_right(8);
  if (ctx.button({copy.x, copy.y + 2, copy.w, 22}, "Copy CSV", find.statistics.ready(), Context::Look::plain,
                 "All groups as comma-separated values, times in nanoseconds")) {
    ImGui::SetClipboardText(groups_csv(ctx.app.store(), find.search, find.statistics).c_str());
    ctx.ui.say("Copied " + std::to_string(find.statistics.groups().size()) + " groups as CSV" +
               (find.search.cut_short() ? ", " + find.coverage() : std::string()));
  }
  ctx.canvas.text_in(head.take_left(26), "by", ctx.colors().muted, Font::small);
  {
    const FontScope small(ctx.canvas.fonts(), Font::small);
    ImGui::SetCursorScreenPos({head.x, head.y + 2});
    ImGui::SetNextItemWidth(96);
    if (ImGui::BeginCombo(("##by" + id_).c_str(), word(find.by))) {
      for (int i = 0; i < kGroupings; ++i) {
        const auto by = static_cast<GroupBy>(i);
        if (ImGui::Selectable(word(by), by == find.by)) find.by = by;
      }
      ImGui::EndCombo();
    }
  }
  head.take_left(106);
  const auto all = static_cast<std::int64_t>(find.statistics.groups().size());
  const auto listed = static_cast<std::int64_t>(found_.groups().of_row.size());
  ctx.canvas.text_in(head,
                     all > listed ? "the " + grouped(listed) + " largest of " + grouped(all) + " groups"
                                  : grouped(all) + (all == 1 ? " group" : " groups"),
                     ctx.colors().muted, Font::small);
  const TableHit hit = draw_table(ctx, ("##groups" + id_).c_str(), room, found_.groups().table, state_);
  if (hit.clicked) found_.narrow_to(find, *hit.clicked);
}

}  // namespace shardscope::gui
