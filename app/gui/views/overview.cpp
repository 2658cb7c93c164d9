// Overview: is the run healthy, how fast is it, where does each rank's time go, what happens now.
#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/names.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {
namespace {

class OverviewView final : public View {
 public:
  std::string_view name() const override { return "overview"; }
  std::string_view title() const override { return "Overview"; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  void figures(Context& ctx, Rect room);
  void verdict(Context& ctx, Rect& room);
  void ranks(Context& ctx, Rect room);
  void plots(Context& ctx, Rect room);
  float scroll_ = 0;
};

struct Figure {
  const char* label;
  Quantity value;
  std::string formula;
};

void OverviewView::figures(Context& ctx, Rect room) {
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
  const std::vector<Figure> all{
      {"step time, median", milliseconds(s.step_ms_median),
       "Median over the measured steps, pauses cut out; p95 " + milliseconds(s.step_ms_p95).text()},
      {"throughput", tokens, "Tokens of all ranks / step time"},
      {"loss", {decimal(loss, 4), ""}, "Mean over ranks and micro-steps of the last completed step"},
      {"communication hidden", percent(overlap),
       "100 (1 - exposed communication / |communication|), all ranks"},
      {"model states per rank", states,
       "Measured peak; ZeRO's expression " + s.memory_model.expression + " says " +
           bytes(s.memory_model.bytes_per_rank).text()},
  };
  const auto columns = std::clamp(static_cast<int>(room.w / 150), 1, static_cast<int>(all.size()));
  const float w = room.w / static_cast<float>(columns);
  for (int i = 0; i < columns; ++i) {
    Rect cell{room.x + static_cast<float>(i) * w, room.y, w - 12, room.h};
    const Rect whole = cell;
    const Figure& figure = all[static_cast<std::size_t>(i)];
    ctx.canvas.text_in(cell.take_top(18), figure.label, c.muted, Font::small);
    const float number = std::min(cell.w, ctx.canvas.width(figure.value.number, Font::mono_title) + 1);
    const Rect line = cell.take_top(32);
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
  Rect line = room.take_top(30);
  const Rgb color = worst->severity == ev::Severity::error ? c.of(Meaning::trouble) : c.of(Meaning::reduce);
  ctx.canvas.fill(line, color, 0.14F, 3);
  ctx.canvas.fill({line.x, line.y, 4, line.h}, color, 1, 2);
  line = line.inset(16, 0);
  const float w = std::min(line.w, ctx.canvas.width(worst->title, Font::strong) + 12);
  const Rect whole = line;
  ctx.canvas.text_in(line.take_left(w), worst->title, c.text, Font::strong);
  ctx.canvas.text_in(line, worst->evidence, mix(c.muted, c.text, 0.5F), Font::small);
  if (ctx.hovered(whole)) ctx.tip(worst->evidence + "\nNext: " + worst->next_step);
  room.take_top(8);
}

void OverviewView::ranks(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const analysis::Summary& s = app.run->summary();
  Rect head = room.take_top(20);
  constexpr float kName = 64;
  constexpr float kNumber = 84;
  const float place_width = std::clamp(room.w * 0.30F, 0.0F, 300.0F);
  const bool wide = room.w > 620;
  Rect line = head;
  ctx.canvas.text_in(line.take_left(kName), "Ranks", c.muted, Font::small);
  if (wide)
    ctx.canvas.text_in(line.take_right(place_width).inset(8, 0),
                       app.cursor_ns     ? "at the cursor"
                       : app.run->live() ? "now"
                                         : "at the end",
                       c.muted, Font::small);
  ctx.canvas.text_in(line.take_right(kNumber), "fetch wait", c.muted, Font::small, Align::right);
  ctx.canvas.text_in(line.take_right(kNumber), "hidden", c.muted, Font::small, Align::right);
  line.take_right(16);
  if (line.w > 330) time_legend(ctx, line, s.ranks.empty() ? analysis::RankSummary{} : s.ranks.front());
  ctx.canvas.horizontal(head.x, head.bottom() - 1, head.w, c.line);
  room.take_top(4);
  const auto all = app.store().ranks();
  ctx.scroll(this, room, 24 * static_cast<float>(all.size()), scroll_);
  const Clip clip(ctx.canvas, room);
  float y = room.y - scroll_;
  for (const store::RankRow& rank : all) {
    Rect row{room.x, y, room.w - 8, 24};
    y += 24;
    if (row.bottom() < room.y || row.y > room.bottom()) continue;
    const Rect whole = row;
    const bool over = ctx.hovered(whole);
    if (over) ctx.canvas.fill(whole, c.raised);
    const RankPace pace = rank_pace(app, rank.rank);
    const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == rank.rank;
    ctx.canvas.text_in(row.take_left(kName), "rank " + std::to_string(rank.rank),
                       chosen           ? c.accent
                       : pace.straggler ? c.of(Meaning::trouble)
                                        : c.text,
                       Font::small);
    const analysis::RankSummary* sum = nullptr;
    for (const analysis::RankSummary& one : s.ranks) {
      if (one.rank == rank.rank) sum = &one;
    }
    if (wide) {
      const Rect place = row.take_right(place_width);
      const GatePosition at = gate_position(app.store(), rank.rank, app.now_ns());
      const std::string text = rank.finished && !app.cursor_ns
                                   ? (rank.exit_code == 0 ? "finished" : "failed: " + rank.exit_message)
                               : at.known ? at.place
                                          : "no gate passed yet";
      if (ctx.canvas.text_in(place.inset(8, 0), text,
                             rank.finished && rank.exit_code != 0 ? c.of(Meaning::trouble) : c.text,
                             Font::small) &&
          over) {
        ctx.tip(text);
      }
    }
    const Quantity wait =
        sum != nullptr && sum->fetch_wait_ns ? duration(*sum->fetch_wait_ns) : Quantity{kMissing, ""};
    ctx.quantity(row.take_right(kNumber), wait.number, wait.unit, 24);
    const Quantity hidden = sum != nullptr ? percent(sum->time.overlap_pct()) : Quantity{kMissing, ""};
    ctx.quantity(row.take_right(kNumber), hidden.number, hidden.unit, 20);
    row.take_right(16);
    if (sum != nullptr && row.w > 20) {
      stacked_bar(ctx, row.inset(0, 5), time_parts(c, *sum), static_cast<double>(sum->time.total_ns),
                  [](double ns) { return duration(static_cast<std::int64_t>(ns)).text(); });
    }
    if (over && ctx.pointer.pressed[0]) app.select_rank(rank.rank);
  }
}

void OverviewView::plots(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = ctx.app.run->summary();
  const auto steps = ctx.app.store().steps();
  const std::uint32_t first = steps.empty() ? 0 : steps.front().step;
  std::vector<SeriesPlot> all;
  all.push_back({"Loss", "", s.loss, first, c.of(Meaning::compute), false, 3});
  all.push_back({"Step time", "ms", s.step_ms, first, c.of(Meaning::gather), true,
                 s.step_ms_median.value_or(0) < 10 ? 2 : 1});
  bool norms = false;
  for (const double norm : s.grad_norm) norms |= std::isfinite(norm);
  if (norms) all.push_back({"Gradient norm", "", s.grad_norm, first, c.of(Meaning::reduce), true, 3});
  const bool side_by_side = room.w > 560;
  const auto n = static_cast<float>(all.size());
  const float width = (room.w - 24 * (n - 1)) / n;
  const float height = room.h / n;
  for (const SeriesPlot& one : all) {
    Rect place = side_by_side ? room.take_left(width) : room.take_top(height);
    const int hit = plot_series(ctx, place, one);
    if (hit >= 0 && ctx.pointer.pressed[0] && static_cast<std::size_t>(hit) < steps.size()) {
      ctx.app.go_to_step(steps[static_cast<std::size_t>(hit)].step);
      ctx.app.select_step(steps[static_cast<std::size_t>(hit)].step);
    }
    if (side_by_side) room.take_left(24);
  }
}

void OverviewView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.store().has_tables()) {
    ctx.empty(room, app.run->live() ? "Waiting for the run" : "This recording names no run",
              app.run->live() ? "The first rank that connects says what is trained and how."
                              : "Its tables are missing, so only raw lanes can be shown.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  const bool alone = room.h > 420;
  if (alone) {
    const Identity identity = identify(app.store());
    std::string line = identity.model;
    for (const std::string& fact : identity.facts) line += "   " + fact;
    if (!identity.link.empty()) line += "   " + identity.link;
    line += "   " + count(static_cast<double>(app.store().tables().elems)).text() + " parameters";
    ctx.canvas.text_in(room.take_top(22), line, ctx.colors().muted, Font::body);
    room.take_top(8);
  }
  verdict(ctx, room);
  figures(ctx, room.take_top(54));
  room.take_top(8);
  const float rank_rows = 28 + 24 * static_cast<float>(app.store().ranks().size());
  if (room.h > 190) {
    const float plot_height = std::clamp(room.h - rank_rows - 12, 100.0F, alone ? room.h * 0.62F : 140.0F);
    plots(ctx, room.take_top(plot_height));
    room.take_top(12);
  }
  if (room.h > 40) ranks(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_overview_view() { return std::make_unique<OverviewView>(); }

}  // namespace shardscope::gui
