// Communication: amount, speed, hidden share, and late or unused prefetches; of the run or of a range of it.
// Shows both runs of a comparison, labelled A and B.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include "app/analysis/missing_reason.h"
#include "app/gui/model/communication_tables.h"
#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/names.h"
#include "app/gui/model/panel_range.h"
#include "app/gui/model/range_communication.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/part_bars.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kMostCollectives = 5000;
constexpr float kPrefetches = 76;  ///< height of header, bar and legend
/// Time per frame for reading a range.
constexpr std::chrono::nanoseconds kRangeShareOfFrame = std::chrono::milliseconds(1);

std::uint64_t prefetch_count(const LabelledRun& run) {
  const analysis::Prefetch p = run.figures().prefetch.value_or(analysis::Prefetch{});
  return p.early + p.just_in_time + p.late + p.mistargeted + p.unused;
}

enum class List : std::uint8_t { ranks, waits, collectives };
/// run: the measured steps.
enum class CommunicationOf : std::uint8_t { run, range };

class CommunicationView final : public View {
 public:
  std::string_view name() const override { return "communication"; }
  std::string_view title() const override { return "Communication"; }
  RunsOf runs() const override { return RunsOf::both; }
  bool analysed() const override { return true; }
  std::vector<Choice> choices(const AppState& app) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void build(const AppState& app);
  [[nodiscard]] CommunicationOf of(const AppState& app) const {
    return of_.value_or(app.measured ? CommunicationOf::range : CommunicationOf::run);
  }
  /// Reads the range; false while none of its figures are known.
  bool read_range(Context& ctx);
  void range_line(Context& ctx, Rect& room);
  void volume(Context& ctx, Rect& room, const LabelledRun& run);
  void operations(Context& ctx, Rect& room);
  void prefetches(Context& ctx, Rect& room, const LabelledRun& run);
  void by_step(Context& ctx, Rect room);
  void list(Context& ctx, Rect room);
  void ranks(Context& ctx, const Rect& room);
  void waits(Context& ctx, const Rect& room);
  void collectives(Context& ctx, Rect room);
  static void show(AppState& app, const SpanTable::Place& place, SelectionKind kind);

  std::vector<LabelledRun> runs_;
  std::shared_ptr<const Analysis> of_shown_, of_other_;  ///< analyses of which the tables are made
  Table operations_;
  RankTable ranks_;
  SpanTable waits_, collectives_;
  struct Window {
    std::uint64_t run = 0;  ///< Session::number()
    std::uint32_t rank = ev::kNoId;
    TimeRange range;
    std::uint64_t revision = 0;
    friend bool operator==(const Window&, const Window&) = default;
  };
  Window collectives_of_;
  std::vector<Curve> exposed_;
  std::uint32_t first_step_ = 0;
  TableState operations_state_, ranks_state_, waits_state_, collectives_state_;
  List list_ = List::ranks;
  std::optional<CommunicationOf> of_;  ///< as chosen; empty: the range while one is measured, else the run
  bool measured_ = false;              ///< a range was measured in the last frame
  RangeCommunication range_;
  std::uint64_t range_version_ = 0;  ///< of the figures in runs_
};

std::vector<Choice> CommunicationView::choices(const AppState& app) {
  return {{"list",
           {"ranks", "waits", "collectives"},
           static_cast<int>(list_),
           [this](AppState&, int to) { list_ = static_cast<List>(to); }},
          {"of", {"run", "range"}, static_cast<int>(of(app)), [this](AppState&, int to) {
             of_ = static_cast<CommunicationOf>(to);
           }}};
}

bool CommunicationView::read_range(Context& ctx) {
  AppState& app = ctx.app;
  // Not in every frame of a drag.
  const bool still = ctx.ui.captured == nullptr || range_.figures() == nullptr;
  while (still && range_.advance(app, panel_range(app).range, kRangeShareOfFrame)) {
    ctx.moving = true;
    if (app.run->in_window()) break;
  }
  return range_.figures() != nullptr;
}

void CommunicationView::range_line(Context& ctx, Rect& room) {
  Rect line = room.take_top(22);
  const PanelRange shown = panel_range(ctx.app);
  std::string text = "Of the " + text_of(PanelRange{range_.figures()->range, shown.measured});
  if (*runs_.front().letter != 0) text += std::string(", of ") + runs_.front().letter;
  if (range_.progress() < 1) {
    const std::string counting = "counting, " + decimal(100 * range_.progress(), 0) + " %";
    ctx.canvas.text_in(line.take_right(ctx.canvas.width(counting, Font::small) + 8), counting,
                       ctx.colors().muted, Font::small, Align::right);
  }
  ctx.canvas.text_in(line, text, ctx.colors().text, Font::small);
  if (ctx.hovered(line))
    ctx.tip(
        "Collectives and waits that begin in the range; times are cut at its ends. Drag along the times, or "
        "with Shift in the timeline, to measure a range.");
}

/// Called once per analysis and read range: the tables depend on nothing else.
void CommunicationView::build(const AppState& app) {
  of_shown_ = app.run->analysis();
  of_other_ = app.other ? app.other->analysis() : nullptr;
  range_version_ = range_.version();
  // A range is of the times of the run that is shown.
  if (of(app) == CommunicationOf::range) {
    runs_ = {shown_run(app)};
    runs_.front().of_range = range_.figures();
  } else {
    runs_ = labelled_runs(app);
  }
  operations_ = operation_table(runs_);
  ranks_ = overlap_table(runs_);
  waits_ = wait_table(runs_);
  exposed_.clear();
  for (const LabelledRun& run : runs_) {
    const auto steps = run.run->store().steps();
    if (exposed_.empty()) first_step_ = steps.empty() ? 0 : steps.front().step;
    Curve curve{*run.letter != 0 ? run.letter : "exposed", {}, 0};
    for (const store::StepRow& step : steps) {
      const StepTimes* times = run.run->step_times(step.step);
      double worst = NAN;
      if (times != nullptr) {
        for (const StepTimes::Rank& rank : times->ranks) {
          if (rank.time.known())
            worst = std::fmax(worst, static_cast<double>(rank.time.exposed_comm_ns) / 1e6);
        }
      }
      curve.values.push_back(worst);
    }
    exposed_.push_back(std::move(curve));
  }
}

void CommunicationView::volume(Context& ctx, Rect& room, const LabelledRun& run) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = run.run->summary();
  if (!s.elements_per_step) return;
  Rect line = room.take_top(24);
  const Rect whole = line;
  if (*run.letter != 0) {
    const Rect mark = line.take_left(34);
    ctx.canvas.fill({mark.x, mark.y + 7, 10, 10}, c.runs[index_of(run.letter)], 1, 2);
    ctx.canvas.text_in({mark.x + 14, mark.y, 12, mark.h}, run.letter, c.text, Font::strong);
  }
  ctx.canvas.text_in(line.take_left(190), "elements per step and rank", c.muted, Font::small);
  const std::string measured = count(*s.elements_per_step).text();
  ctx.canvas.text_in(line.take_left(ctx.canvas.width(measured, Font::mono) + 10), measured, c.text,
                     Font::mono);
  if (s.expected_elements_per_step > 0) {
    const double off = 100 * (*s.elements_per_step / s.expected_elements_per_step - 1);
    const std::string expected = s.comm_expression + " = " + count(s.expected_elements_per_step).text();
    ctx.canvas.text_in(line.take_left(ctx.canvas.width(expected, Font::small) + 14), expected, c.muted,
                       Font::small);
    // Known extra elements are fine; unexplained ones are marked.
    const double left = s.unexplained_elements_per_step.value_or(0);
    const bool known = s.unexplained_elements_per_step.has_value();
    const bool trouble = known ? std::abs(left) >= 0.5 : off > 5;
    std::string rest = std::string(off >= 0 ? "+" : "").append(decimal(off, 2)).append(" %");
    if (known) rest += trouble ? ", " + count(left).text() + " unexplained" : off == 0 ? "" : ", explained";
    ctx.canvas.text_in(line, rest, trouble ? c.of(Meaning::trouble) : c.muted, Font::small);
  }
  if (!ctx.hovered(whole)) return;
  Details tip;
  tip.title = "Measured against ZeRO's expression";
  tip.fields.push_back({s.comm_expression, count(s.expected_elements_per_step).text(), "", ""});
  for (const analysis::VolumePart& part : s.volume_parts) {
    const std::string sign = part.elements_per_step > 0 ? "+" : "";
    tip.fields.push_back({analysis::name_of(part.cause), sign + count(part.elements_per_step).text(), "",
                          analysis::explain(part.cause)});
  }
  tip.fields.push_back({"unexplained",
                        s.unexplained_elements_per_step ? count(*s.unexplained_elements_per_step).text()
                                                        : std::string("not known at this detail"),
                        "", ""});
  tip.reason = "Elements of full tensors; an all-reduce counts twice.";
  ctx.tip(tip);
}

void CommunicationView::operations(Context& ctx, Rect& room) {
  if (operations_.rows.empty() || room.h < 60) return;
  const analysis::Summary& s = ctx.app.run->summary();
  const std::string covered =
      runs_.front().of_range != nullptr ? "" : analysis::coverage(s, s.ops_steps, s.steps_measured);
  ctx.section(room, "Operations of rank " + std::to_string(s.ranks.empty() ? 0 : s.ranks.front().rank) +
                        (covered.empty() ? "" : ", " + covered));
  // Prefetches are shown below if there is room for all.
  float rest = 0;
  for (const LabelledRun& run : runs_) rest += prefetch_count(run) > 0 ? kPrefetches + 8 : 0;
  const float all = table_height(operations_);
  const float h = room.w > 900 ? std::min(all, std::max(72.0F, room.h * 0.45F))
                               : std::min(all, room.h - rest > 72 ? room.h - rest : room.h);
  draw_table(ctx, "##operations", room.take_top(h), operations_, operations_state_);
}

void CommunicationView::prefetches(Context& ctx, Rect& room, const LabelledRun& run) {
  const Palette& c = ctx.colors();
  const analysis::Prefetch p = run.figures().prefetch.value_or(analysis::Prefetch{});
  const std::uint64_t total = prefetch_count(run);
  if (total == 0 || room.h < kPrefetches) return;
  const analysis::Summary& whole = run.run->summary();
  const std::string covered =
      run.of_range != nullptr ? "" : analysis::coverage(whole, whole.prefetch_steps, whole.steps);
  ctx.section(room,
              (*run.letter != 0 ? std::string(run.letter) + ": prefetches" : std::string("Prefetches")) +
                  " of all ranks by outcome" + (covered.empty() ? "" : ", " + covered));
  const std::vector<Part> parts{
      {"early", static_cast<double>(p.early), mix(c.of(Meaning::gather), c.panel, 0.55F), false},
      {"just in time", static_cast<double>(p.just_in_time), c.of(Meaning::gather), false},
      {"late", static_cast<double>(p.late), c.of(Meaning::trouble), true},
      {"mistargeted", static_cast<double>(p.mistargeted), c.of(Meaning::copy), false},
      {"unused", static_cast<double>(p.unused), c.of(Meaning::neutral), false}};
  stacked_bar(ctx, room.take_top(16), parts, static_cast<double>(total),
              [](double n) { return decimal(n, 0); });
  room.take_top(4);
  Rect legend = room.take_top(18);
  for (const Part& part : parts) {
    const std::string text = part.label + " " + decimal(part.value, 0);
    const float w = ctx.canvas.width(text, Font::small) + 28;
    if (part.value == 0 || legend.w < w) continue;
    const Rect place = legend.take_left(w);
    const Rect mark{place.x, place.y + 4, 10, 10};
    ctx.canvas.fill(mark, part.color, part.hatched ? 0.4F : 1);
    if (part.hatched) ctx.canvas.hatch(mark, part.color, 1, 4);
    ctx.canvas.text_in({place.x + 16, place.y, place.w, place.h}, text, c.text, Font::small);
  }
  if (p.late > 0) {
    const std::string cost = "late ones cost " + duration(p.late_wait_ns).text();
    ctx.canvas.text_in(legend, cost, c.muted, Font::small);
  }
}

void CommunicationView::by_step(Context& ctx, Rect room) {
  if (room.h < 120) return;
  room.take_top(12);
  StepPlot plot;
  plot.title = "Exposed communication per step, worst rank";
  plot.unit = "ms";
  plot.curves = exposed_;
  const Palette& c = ctx.colors();
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    plot.curves[i].color = plot.curves.size() > 1 ? c.runs[i] : c.of(kExposedComm);
  plot.first_step = first_step_;
  plot.from_zero = true;
  plot.digits = 1;
  const int hit = step_plot(ctx, room.take_top(std::min(room.h, 260.0F)), plot);
  if (hit >= 0) ctx.app.go_to_step(first_step_ + static_cast<std::uint32_t>(hit));
}

void CommunicationView::show(AppState& app, const SpanTable::Place& place, SelectionKind kind) {
  app.timeline.expanded.insert(place.lane.rank);
  app.select_span(place.lane, place.span);
  if (kind == SelectionKind::collective) app.selection.rank = place.lane.rank;
  const std::int64_t margin = (place.span.end_ns - place.span.begin_ns) * 3;
  app.time.go({place.span.begin_ns - margin, place.span.end_ns + margin}, app.store().end_ns());
  app.follow = false;
}

void CommunicationView::ranks(Context& ctx, const Rect& room) {
  const Palette& c = ctx.colors();
  std::int64_t most = 1;
  for (const RankTable::Row& row : ranks_.rows) most = std::max(most, row.rank->time.comm_ns);
  TableOptions options;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    if (column != 1) return false;
    const analysis::RankSummary& rank = *ranks_.rows[row].rank;
    if (rank.time.known()) {
      stacked_bar(ctx, cell.inset(0, 5), overlap_parts(c, rank), static_cast<double>(most),
                  [](double ns) { return duration(static_cast<std::int64_t>(ns)).text(); });
    }
    return true;
  };
  const TableHit hit = draw_table(ctx, "##overlap", room, ranks_.table, ranks_state_, options);
  if (hit.clicked) {
    const std::uint32_t rank = ranks_.rows[*hit.clicked].rank->rank;
    ctx.app.show_run(*runs_[ranks_.rows[*hit.clicked].run].run);
    ctx.app.select_rank(rank);
    ctx.app.timeline.expanded.insert(rank);
  }
}

void CommunicationView::waits(Context& ctx, const Rect& room) {
  AppState& app = ctx.app;
  if (waits_.places.empty()) {
    const auto& ranks = app.run->summary().ranks;
    const bool known =
        std::ranges::any_of(ranks, [](const analysis::RankSummary& rank) { return rank.time.known(); });
    ctx.canvas.text_in({room.x, room.y, room.w, kTableRow},
                       known && runs_.front().of_range != nullptr ? "No wait for communication begins in it."
                       : known
                           ? "Computation never waited for communication."
                           : "Not known: " +
                                 analysis::missing_reason(app.run->summary(), "waits", ev::Detail::modules,
                                                          ev::Capability::fetch_waits) +
                                 ".",
                       ctx.colors().muted, Font::small);
    return;
  }
  const TableHit hit = draw_table(ctx, "##waits", room, waits_.table, waits_state_);
  if (!hit.clicked) return;
  app.show_run(*runs_[waits_.places[*hit.clicked].run].run);
  show(app, waits_.places[*hit.clicked], SelectionKind::wait);
}

void CommunicationView::collectives(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const auto ranks = app.store().ranks();
  if (ranks.empty()) return;
  const std::uint32_t rank = app.selection.rank != ev::kNoId ? app.selection.rank : ranks.front().rank;
  const PanelRange shown = panel_range(app);
  const Window window{app.run->number(), rank, shown.range, app.store().revision()};
  // Read for a new range, but not in every frame of a drag, nor of a live run whose range is
  // unchanged.
  const bool reads = !app.run->live() || window.range != collectives_of_.range;
  if (window != collectives_of_ && (reads || collectives_of_.run == 0) && ctx.ui.captured == nullptr) {
    collectives_of_ = window;
    collectives_ =
        collective_table(*app.run, rank, window.range.begin_ns, window.range.end_ns, kMostCollectives);
  }
  const Rect head = room.take_top(20);
  ctx.canvas.text_in(head,
                     std::string(collectives_.cut ? "The first " : "") +
                         grouped(static_cast<std::int64_t>(collectives_.places.size())) +
                         " collectives of rank " + std::to_string(rank) +
                         (app.other ? std::string(" of ") + app.letter_of(*app.run) : std::string()) +
                         " in the " + text_of(shown),
                     ctx.colors().muted, Font::small);
  const TableHit hit = draw_table(ctx, "##collectives", room, collectives_.table, collectives_state_);
  if (hit.clicked)
    app.select_span(collectives_.places[*hit.clicked].lane, collectives_.places[*hit.clicked].span);
}

void CommunicationView::list(Context& ctx, Rect room) {
  if (room.h < 60) return;
  constexpr std::array kTitles{"Hidden and exposed, by rank", "Longest waits of computation", "Collectives"};
  ctx.section(room, kTitles[static_cast<std::size_t>(list_)]);
  if (list_ == List::ranks)
    ranks(ctx, room);
  else if (list_ == List::waits)
    waits(ctx, room);
  else
    collectives(ctx, room);
}

void CommunicationView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const analysis::Summary& s = app.run->summary();
  if (s.ops.empty() && !s.elements_per_step) {
    ctx.empty(room, s.copy_ranks == 1 ? "One rank: nothing is communicated" : "No collectives measured yet",
              s.steps > 0 ? "Of the steps so far: " +
                                analysis::missing_reason(s, "collectives", ev::Detail::modules,
                                                         ev::Capability::collectives) +
                                "."
                          : "Figures appear after the first completed steps.");
    return;
  }
  // A range that is measured, or no longer, changes what is shown; a choice holds until then.
  if (measured_ != app.measured.has_value()) of_.reset();
  measured_ = app.measured.has_value();
  room = {room.x + 12, room.y, room.w - 20, room.h - 8};
  const bool range = of(app) == CommunicationOf::range;
  if (range && !read_range(ctx)) {
    ctx.empty(room, "Adding up", "Collectives and waits of the range are added up step by step.");
    return;
  }
  if (of_shown_ != app.run->analysis() || of_other_ != (app.other ? app.other->analysis() : nullptr) ||
      runs_.empty() || range != (runs_.front().of_range != nullptr) ||
      (range && range_version_ != range_.version()))
    build(app);
  const std::string link = identify(app.store()).link;
  if (!link.empty()) {
    ctx.canvas.text_in(room.take_top(20), link + ": times below are of that link, not of this machine",
                       ctx.colors().warning, Font::small);
  }
  if (range) {
    range_line(ctx, room);
    if (operations_.rows.empty())
      ctx.canvas.text_in(room.take_top(kTableRow), "No collective begins in it.", ctx.colors().muted,
                         Font::small);
  } else {
    for (const LabelledRun& run : runs_) volume(ctx, room, run);
  }
  if (room.w > 900) {
    Rect left = room.take_left((room.w - 32) / 2);
    room.take_left(32);
    operations(ctx, left);
    for (const LabelledRun& run : runs_) prefetches(ctx, left, run);
    by_step(ctx, left);
    list(ctx, room);
    return;
  }
  Rect below = room.take_bottom(room.h > 320 ? room.h * 0.48F : room.h);
  operations(ctx, room);
  for (const LabelledRun& run : runs_) prefetches(ctx, room, run);
  list(ctx, below);
}

}  // namespace

std::unique_ptr<View> make_communication_view() { return std::make_unique<CommunicationView>(); }

}  // namespace shardscope::gui
