// Overview: health and speed of the run, where each rank's time goes, and the current state.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/names.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/part_bars.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class OverviewView final : public View {
 public:
  std::string_view name() const override { return "overview"; }
  std::string_view title() const override { return "Overview"; }
  bool analysed() const override { return true; }
  std::vector<Choice> choices(const AppState& app) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void facts(Context& ctx, Rect& room) const;
  void figures(Context& ctx, Rect& room);
  void verdict(Context& ctx, Rect& room);
  [[nodiscard]] Table rank_table(const AppState& app) const;
  void refresh(const AppState& app);
  void ranks(Context& ctx, Rect room);
  void plots(Context& ctx, Rect room);
  TableState ranks_state_;
  bool logarithmic_ = false;

  /// Key of the table of ranks: with a thousand ranks building it takes as long as the rest of a
  /// frame.
  struct Written {
    std::shared_ptr<const Analysis> analysis;
    const StepTimes* step = nullptr;
    std::size_t ranks = 0;
    std::uint32_t selected = ev::kNoId;
    std::string_view when;
    friend bool operator==(const Written&, const Written&) = default;
  };
  std::optional<Written> written_;
  Table table_;
  std::vector<const analysis::RankSummary*> sums_;  ///< by row; null: not analysed
};

/// The time that the last column refers to.
const char* when_of(const AppState& app) {
  return app.cursor_ns ? "at the cursor" : app.run->live() ? "now" : "at the end";
}

std::vector<Choice> OverviewView::choices(const AppState&) {
  return {{"scale of the curves", {"linear", "log"}, logarithmic_ ? 1 : 0, [this](AppState&, int to) {
             logarithmic_ = to == 1;
           }}};
}

constexpr float kBetween = 12;  ///< between facts, and between figures
constexpr float kFigureHeight = 48;
constexpr float kLowestPlots = 84;

struct Figure {
  const char* label;
  Quantity value;
  std::string formula;
};

/// What the run is, on a second line where one is too short.
void OverviewView::facts(Context& ctx, Rect& room) const {
  const AppState& app = ctx.app;
  Identity identity = identify(app.store());
  std::vector<std::string> all{std::move(identity.model)};
  all.insert(all.end(), identity.facts.begin(), identity.facts.end());
  if (!identity.link.empty()) all.push_back(identity.link);
  all.push_back(count(static_cast<double>(app.store().tables().elems)).text() + " parameters");
  Rect line = room.take_top(22);
  const float left = line.x;
  for (const std::string& fact : all) {
    const float w = ctx.canvas.width(fact, Font::body);
    if (w > line.w && line.x > left) line = room.take_top(22);
    ctx.canvas.text_in(line, fact, ctx.colors().muted, Font::body);
    line.take_left(w + kBetween);
  }
  room.take_top(4);
}

/// The most important first, in as many rows as leave room for the curves and some ranks.
void OverviewView::figures(Context& ctx, Rect& room) {
  const analysis::Summary& s = ctx.app.run->summary();
  const Palette& c = ctx.colors();
  std::optional<std::int64_t> wait;
  std::optional<double> overlap;
  double exposed = 0;
  double comm = 0;
  for (const analysis::RankSummary& rank : s.ranks) {
    if (!rank.time.known()) continue;
    wait = std::max(wait.value_or(0), rank.fetch_wait_ns.value_or(0));
    exposed += static_cast<double>(rank.time.exposed_comm_ns);
    comm += static_cast<double>(rank.time.comm_ns);
  }
  if (comm > 0) overlap = 100 * (1 - exposed / comm);
  const auto tokens = s.tokens_per_s ? count(*s.tokens_per_s, "tok/s") : Quantity{kMissing, ""};
  const auto states = s.memory_model.measured_bytes_per_rank ? bytes(*s.memory_model.measured_bytes_per_rank)
                                                             : Quantity{kMissing, ""};
  const double loss = s.loss.empty() ? NAN : s.loss.back();
  std::vector<Figure> all{
      {"step time, median", milliseconds(s.step_ms_median),
       "Median over the measured steps, pauses cut out; p95 " + milliseconds(s.step_ms_p95).text()},
      {"throughput", tokens, "Tokens of all ranks, without padding / step time"},
      {"loss", {decimal(loss, 4), ""}, "Mean over ranks and micro-steps of the last completed step"},
      {"communication hidden", percent(overlap),
       "100 (1 - exposed communication / |communication|), all ranks"},
      {"model states per rank", states,
       "Measured peak; ZeRO's expression " + s.memory_model.expression + " = " +
           bytes(s.memory_model.bytes_per_rank).text()},
  };
  if (s.micro_batches && s.micro_batches->vary()) {
    std::string how = "Padding in micro-batches; " + analysis::text_of(*s.micro_batches);
    if (s.uneven_pct) {
      how += "; if time were proportional to size, ranks would wait " + percent(s.uneven_pct).text() +
             " of the time for the largest micro-batch of each micro-step";
    }
    all.push_back({"padding", percent(s.micro_batches->padding_pct()), std::move(how)});
  }
  float widest = 0;
  for (const Figure& figure : all) widest = std::max(widest, ctx.canvas.width(figure.label, Font::small) + 1);
  const int n = static_cast<int>(all.size());
  int columns = std::clamp(static_cast<int>((room.w + kBetween) / (widest + kBetween)), 1, n);
  constexpr float kSomeRanks = 94;
  const int rows = std::clamp(static_cast<int>((room.h - kLowestPlots - kSomeRanks) / kFigureHeight), 1,
                              (n + columns - 1) / columns);
  columns = std::min(columns, (n + rows - 1) / rows);
  // Where not all fit, those that are not known are left out first.
  if (rows * columns < n)
    std::ranges::stable_partition(all, [](const Figure& one) { return one.value.number != kMissing; });
  const float w = (room.w + kBetween) / static_cast<float>(columns);
  const Rect place = room.take_top(kFigureHeight * static_cast<float>(rows));
  for (int i = 0; i < std::min(n, rows * columns); ++i) {
    Rect cell{place.x + static_cast<float>(i % columns) * w,
              place.y + static_cast<float>(i / columns) * kFigureHeight, w - kBetween, kFigureHeight};
    const Rect whole = cell;
    const Figure& figure = all[static_cast<std::size_t>(i)];
    ctx.canvas.text_in(cell.take_top(18), figure.label, c.muted, Font::small);
    const float number = std::min(cell.w, ctx.canvas.width(figure.value.number, Font::mono_title) + 1);
    const Rect line = cell.take_top(28);
    ctx.canvas.text_in({line.x, line.y, number, line.h}, figure.value.number, c.text, Font::mono_title);
    ctx.canvas.text_in({line.x + number + 6, line.y + 8, line.w - number - 6, 20}, figure.value.unit, c.muted,
                       Font::body);
    if (ctx.hovered(whole)) ctx.tip(figure.formula);
  }
}

void OverviewView::verdict(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const auto& findings = ctx.app.run->findings();
  const auto worst = std::ranges::max_element(
      findings, {}, [](const analysis::Finding& f) { return static_cast<int>(f.severity); });
  if (worst == findings.end() || worst->severity == ev::Severity::info) return;
  const float title_width = ctx.canvas.width(worst->title, Font::strong) + kBetween;
  constexpr float kEdge = 16;
  // In a narrow panel the evidence has a line of its own.
  const bool two_lines = room.h > 360 &&
                         title_width + ctx.canvas.width(worst->evidence, Font::small) > room.w - 2 * kEdge &&
                         title_width > room.w / 2;
  Rect line = room.take_top(two_lines ? 48 : 30);
  const Rgb color = worst->severity == ev::Severity::error ? c.of(Meaning::trouble) : c.warning;
  ctx.canvas.fill(line, color, 0.14F, 3);
  ctx.canvas.fill({line.x, line.y, 4, line.h}, color, 1, 2);
  line = line.inset(kEdge, two_lines ? 4 : 0);
  const Rect whole = line;
  ctx.canvas.text_in(two_lines ? line.take_top(20) : line.take_left(std::min(line.w, title_width)),
                     worst->title, c.text, Font::strong);
  ctx.canvas.text_in(line, worst->evidence, mix(c.muted, c.text, 0.5F), Font::small);
  if (ctx.hovered(whole))
    ctx.tip(worst->evidence + "\nNext: " + worst->next_step + "\nClick to see the findings");
  if (ctx.activated(whole, "verdict")) ctx.ui.show_panel = "findings";
  room.take_top(8);
}

/// Time, waits and current gate of each rank.
Table OverviewView::rank_table(const AppState& app) const {
  Table table;
  table.columns = {
      {"rank", 0.35F, true},
      {"time", 2.6F, false,
       "Compute, exposed communication, exposed copies, checkpoint, idle: of the measured steps", false, 64},
      {"hidden", 0.5F, true, "100 (1 - exposed communication / |communication|)"},
      {"fetch wait", 0.65F, true, "Compute waited for a gather"},
      {"exposed", 0.65F, true, "Communication while nothing was computed", true},
      {"idle", 0.65F, true, "", true},
      {.name = when_of(app), .weight = 1.7F, .smallest = 136}};
  const RankPaces paces(app);
  for (std::size_t row = 0; row < sums_.size(); ++row) {
    const std::uint32_t rank = app.store().ranks()[row].rank;
    const analysis::RankSummary* const sum = sums_[row];
    const bool known = sum != nullptr && sum->time.known();
    const auto time = [&](std::optional<std::int64_t> ns) {
      return ns ? number_cell(static_cast<double>(*ns), duration(*ns).text()) : number_cell(std::nullopt, "");
    };
    Cell id = number_cell(rank, std::to_string(rank));
    if (app.selection.kind == SelectionKind::rank && app.selection.rank == rank)
      id.tone = Tone::accent;
    else if (paces.of(rank).straggler())
      id.tone = Tone::bad;
    const auto overlap = sum != nullptr ? sum->time.overlap_pct() : std::nullopt;
    table.add({id,
               {"", known ? static_cast<double>(sum->time.compute_ns) : -1.0, Tone::normal, {}, ""},
               number_cell(overlap, percent(overlap).text()),
               time(sum != nullptr ? sum->fetch_wait_ns : std::nullopt),
               time(known ? std::optional(sum->time.exposed_comm_ns) : std::nullopt),
               time(known ? std::optional(sum->time.idle_ns) : std::nullopt),
               {}});
  }
  return table;
}

void OverviewView::refresh(const AppState& app) {
  const auto all = app.store().ranks();
  Written now{app.run->analysis(), step_shown(app), all.size(),
              app.selection.kind == SelectionKind::rank ? app.selection.rank : ev::kNoId, when_of(app)};
  if (written_ == now) return;
  sums_.assign(all.size(), nullptr);
  std::map<std::uint32_t, const analysis::RankSummary*> sums;
  for (const analysis::RankSummary& one : now.analysis->summary.ranks) sums[one.rank] = &one;
  for (std::size_t row = 0; row < all.size(); ++row) {
    if (const auto found = sums.find(all[row].rank); found != sums.end()) sums_[row] = found->second;
  }
  table_ = rank_table(app);
  written_ = std::move(now);
}

void OverviewView::ranks(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const analysis::Summary& s = app.run->summary();
  const auto all = app.store().ranks();
  if (room.h > 90)
    time_legend(ctx, room.take_top(20), s.ranks.empty() ? analysis::RankSummary{} : s.ranks.front());
  refresh(app);
  TableOptions options;
  options.row_height = 24;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    const store::RankRow& rank = all[row];
    if (column == 1) {
      if (const analysis::RankSummary* const sum = sums_[row]; sum != nullptr) {
        stacked_bar(ctx, cell.inset(0, 5), time_parts(c, *sum), static_cast<double>(sum->time.total_ns),
                    [](double ns) { return duration(static_cast<std::int64_t>(ns)).text(); });
      }
      return true;
    }
    if (column != 6) return false;
    // The gate of a rank is looked up for visible rows only.
    const GatePosition at = gate_position(app.store(), rank.rank, app.now_ns());
    const bool failed = rank.finished && rank.exit_code != 0;
    const bool ended = rank.finished && !app.cursor_ns;
    const std::string text = ended      ? (failed ? "failed: " + rank.exit_message : std::string("finished"))
                             : at.known ? brief_position(app.store(), rank.rank, app.now_ns())
                                        : no_gate_text(app.store(), rank.rank, app.now_ns());
    const bool cut = ctx.canvas.text_in(cell, text, failed ? c.of(Meaning::trouble) : c.text, Font::small);
    if (!ctx.hovered(cell)) return true;
    if (!ended && at.known)
      ctx.tip(at.place);
    else if (cut)
      ctx.tip(text);
    return true;
  };
  const TableHit hit = draw_table(ctx, "##ranks", room, table_, ranks_state_, options);
  if (hit.clicked) app.select_rank(all[*hit.clicked].rank);
}

void OverviewView::plots(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = ctx.app.run->summary();
  const auto steps = ctx.app.store().steps();
  const std::uint32_t first = steps.empty() ? 0 : steps.front().step;
  const int digits = s.step_ms_median.value_or(0) < 10 ? 2 : 1;
  std::vector<StepPlot> all;
  StepPlot loss{"Loss", "", {{"loss", s.loss, c.text}}, first, false, logarithmic_, 3};
  if (std::ranges::any_of(s.eval_loss, [](double value) { return std::isfinite(value); }))
    loss.curves.push_back({"held-out", s.eval_loss, c.muted, true});
  all.push_back(std::move(loss));
  all.push_back({"Step time", "ms", {{"step time", s.step_ms, c.text}}, first, true, logarithmic_, digits});
  if (std::ranges::any_of(s.grad_norm, [](double norm) { return std::isfinite(norm); }))
    all.push_back({"Gradient norm", "", {{"norm", s.grad_norm, c.text}}, first, true, logarithmic_, 3});
  // Omit the first step: a warm-up, and an outlier.
  std::vector<double> measured = s.step_ms;
  if (measured.size() > 1) measured.erase(measured.begin());
  const bool distribution = room.w > 900 && measured.size() > 3;
  constexpr float kLowest = 68;      // minimum readable height when stacked
  constexpr float kNarrowest = 180;  // and width side by side
  const auto stacked = static_cast<std::size_t>(std::max(1.0F, room.h / kLowest));
  const auto beside = static_cast<std::size_t>(std::max(1.0F, room.w / kNarrowest));
  const bool side_by_side = room.w > 560 || beside > stacked;
  if (const auto fit = side_by_side ? beside : stacked; all.size() > fit) all.resize(fit);
  const auto n = static_cast<float>(all.size() + (distribution ? 1 : 0));
  const float width = (room.w - 24 * (n - 1)) / n;
  const float height = room.h / n;
  for (const StepPlot& one : all) {
    const Rect place = side_by_side ? room.take_left(width) : room.take_top(height);
    const int hit = step_plot(ctx, place, one);
    if (hit >= 0 && static_cast<std::size_t>(hit) < steps.size()) {
      ctx.app.go_to_step(steps[static_cast<std::size_t>(hit)].step);
      ctx.app.select_step(steps[static_cast<std::size_t>(hit)].step);
    }
    if (side_by_side) room.take_left(24);
  }
  if (distribution) distribution_plot(ctx, room, {"Step time", "ms", {{"steps", measured, c.muted}}, digits});
}

void OverviewView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.store().has_tables()) {
    ctx.empty(room, app.run->live() ? "Waiting for the run" : "This recording has no description of its run",
              app.run->live() ? "The first rank that connects sends a description of it."
                              : "Its tables are missing, so only raw lanes can be shown.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  const bool alone = room.h > 420;
  if (alone) facts(ctx, room);
  verdict(ctx, room);
  figures(ctx, room);
  room.take_top(8);
  const float rank_rows = 46 + 24 * static_cast<float>(app.store().ranks().size());
  if (room.h > 190) {
    // Alone in a window the plots use the room that few ranks leave.
    const float rest = room.h - rank_rows - 12;
    const float plot_height = std::clamp(rest, kLowestPlots, alone ? std::max(rest, room.h * 0.62F) : 140.0F);
    plots(ctx, room.take_top(plot_height));
    room.take_top(12);
  }
  if (room.h > 40) ranks(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_overview_view() { return std::make_unique<OverviewView>(); }

}  // namespace shardscope::gui
