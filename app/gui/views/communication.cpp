// Communication: how much is moved, how fast, how much of it was hidden, and which prefetches missed.
#include <algorithm>
#include <cmath>

#include "app/analysis/missing_reason.h"
#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

class CommunicationView final : public View {
 public:
  std::string_view name() const override { return "communication"; }
  std::string_view title() const override { return "Communication"; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  void volume(Context& ctx, Rect& room);
  void operations(Context& ctx, Rect& room);
  void prefetches(Context& ctx, Rect& room);
  void overlap(Context& ctx, Rect& room);
  void by_step(Context& ctx, Rect room);
  void waits(Context& ctx, Rect room);
  float scroll_ = 0;
};

void CommunicationView::volume(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = ctx.app.run->summary();
  if (!s.elements_per_step) return;
  Rect line = room.take_top(24);
  const Rect whole = line;
  ctx.canvas.text_in(line.take_left(190), "elements per step and rank", c.muted, Font::small);
  const std::string measured = count(*s.elements_per_step).text();
  ctx.canvas.text_in(line.take_left(ctx.canvas.width(measured, Font::mono) + 10), measured, c.text,
                     Font::mono);
  if (s.expected_elements_per_step > 0) {
    const double off = 100 * (*s.elements_per_step / s.expected_elements_per_step - 1);
    const std::string expected = s.comm_expression + " = " + count(s.expected_elements_per_step).text();
    ctx.canvas.text_in(line.take_left(ctx.canvas.width(expected, Font::small) + 14), expected, c.muted,
                       Font::small);
    // Known extras are no trouble; what nothing explains is.
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
  tip.reason = "Elements of the whole; an all-reduce counts twice.";
  ctx.tip(tip);
}

void CommunicationView::operations(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const analysis::Summary& s = ctx.app.run->summary();
  if (s.ops.empty()) return;
  const std::string covered = analysis::coverage(s, s.ops_steps, s.steps_measured);
  ctx.section(room, "Operations of rank " + std::to_string(s.ranks.empty() ? 0 : s.ranks.front().rank) +
                        (covered.empty() ? "" : ", " + covered));
  const std::vector<std::pair<const char*, const char*>> heads{
      {"count", "Over the measured steps"},
      {"bytes", "S: full size over all ranks (metrics 2.3)"},
      {"algbw",
       "Of the transfer alone: S / time from when all ranks had come to the end, the least over ranks"},
      {"busbw", "algbw x the operation's factor, which makes it comparable with the link"},
      {"waiting", "busbw with waiting, as a cost: S x factor / time from begin to end, mean over ranks"}};
  const float width = std::clamp((room.w - 110) / 5, 64.0F, 120.0F);
  Rect head = room.take_top(18);
  for (std::size_t i = heads.size(); i-- > 0;) {
    const Rect cell = head.take_right(width);
    ctx.canvas.text_in({cell.x, cell.y, cell.w - 4, cell.h}, heads[i].first, c.muted, Font::small,
                       Align::right);
    if (ctx.hovered(cell)) ctx.tip(heads[i].second);
  }
  for (const analysis::OpRow& op : s.ops) {
    if (room.h < kTableRow) return;
    Rect row = room.take_top(kTableRow);
    for (const Quantity& value :
         {bandwidth(op.busbw_waiting_gbs), bandwidth(op.busbw_gbs), bandwidth(op.algbw_gbs), bytes(op.bytes),
          count(static_cast<double>(op.count))}) {
      ctx.quantity(row.take_right(width), value.number, value.unit, value.unit.empty() ? 4 : 36);
    }
    const Rgb color = c.of(meaning_of(ev::EventKind::collective_begin, static_cast<std::uint8_t>(op.op)));
    ctx.canvas.fill({row.x, row.y + 6, 10, 10}, color, 1, 2);
    ctx.canvas.text_in({row.x + 16, row.y, row.w - 16, row.h}, word(op.op), c.text, Font::small);
  }
}

void CommunicationView::prefetches(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const analysis::Prefetch p = ctx.app.run->summary().prefetch.value_or(analysis::Prefetch{});
  const std::uint64_t total = p.early + p.just_in_time + p.late + p.mistargeted + p.unused;
  if (total == 0 || room.h < 76) return;
  const std::string covered = analysis::coverage(
      ctx.app.run->summary(), ctx.app.run->summary().prefetch_steps, ctx.app.run->summary().steps);
  ctx.section(room, "Prefetches of all ranks by outcome" + (covered.empty() ? "" : ", " + covered));
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

void CommunicationView::overlap(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const auto& ranks = ctx.app.run->summary().ranks;
  if (ranks.empty() || room.h < 80) return;
  ctx.section(room, "Hidden and exposed, by rank");
  std::int64_t most = 1;
  for (const analysis::RankSummary& rank : ranks) most = std::max(most, rank.time.comm_ns);
  for (const analysis::RankSummary& rank : ranks) {
    if (room.h < 70) return;
    Rect row = room.take_top(kTableRow);
    ctx.canvas.text_in(row.take_left(56), "rank " + std::to_string(rank.rank), c.text, Font::small);
    const Quantity hidden = percent(rank.time.overlap_pct());
    ctx.quantity(row.take_right(64), hidden.number, hidden.unit, 20);
    row.take_right(8);
    if (!rank.time.known()) continue;
    stacked_bar(ctx, row.inset(0, 5), overlap_parts(c, rank), static_cast<double>(most),
                [](double ns) { return duration(static_cast<std::int64_t>(ns)).text(); });
  }
}

void CommunicationView::by_step(Context& ctx, Rect room) {
  if (room.h < 130) return;
  const auto steps = ctx.app.store().steps();
  SeriesPlot plot{"Exposed communication per step, worst rank",
                  "ms",
                  {},
                  steps.empty() ? 0 : steps.front().step,
                  ctx.colors().of(kExposedComm),
                  true,
                  1};
  for (const store::StepRow& step : steps) {
    const StepTimes* times = ctx.app.run->step_times(step.step);
    double worst = NAN;
    if (times != nullptr) {
      for (const StepTimes::Rank& rank : times->ranks) {
        if (rank.time.known()) worst = std::fmax(worst, static_cast<double>(rank.time.exposed_comm_ns) / 1e6);
      }
    }
    plot.values.push_back(worst);
  }
  room.take_top(16);
  plot_series(ctx, room.take_top(std::min(room.h, 240.0F)), plot);
}

void CommunicationView::waits(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  if (room.h < 70) return;
  const std::vector<analysis::Digest::Wait>& longest = app.run->longest_waits();
  ctx.section(room, "Longest waits of computation");
  if (longest.empty()) {
    const auto& ranks = app.run->summary().ranks;
    const bool known =
        std::ranges::any_of(ranks, [](const analysis::RankSummary& rank) { return rank.time.known(); });
    ctx.canvas.text_in(room.take_top(kTableRow),
                       known ? "Computation never waited for communication."
                             : "Not known: " +
                                   analysis::missing_reason(app.run->summary(), "waits", ev::Detail::modules,
                                                            ev::Capability::fetch_waits) +
                                   ".",
                       c.muted, Font::small);
    return;
  }
  ctx.scroll(this, room, kTableRow * static_cast<float>(longest.size()), scroll_);
  const Clip clip(ctx.canvas, room);
  float y = room.y - scroll_;
  for (const auto& [rank, wait] : longest) {
    Rect row{room.x, y, room.w - 10, kTableRow};
    y += kTableRow;
    if (row.bottom() < room.y || row.y > room.bottom()) continue;
    const Rect whole = row;
    const bool over = ctx.hovered(whole) && room.contains(ctx.pointer.x, ctx.pointer.y);
    if (over) ctx.canvas.fill(whole, c.raised);
    const store::SpanTime time = store::time_of(app.store(), rank, wait);
    const Quantity length = duration(time.running_ns);
    ctx.quantity(row.take_left(84), length.number, length.unit, 28, c.of(Meaning::trouble));
    ctx.canvas.text_in(row.take_left(60).inset(4, 0), "rank " + std::to_string(rank), c.muted, Font::small);
    ctx.canvas.text_in(row.take_right(96), timestamp(wait.begin_ns, 100'000), c.muted, Font::mono_small,
                       Align::right);
    row.take_right(8);
    const std::string what = wait_text(app.store(), rank, wait, app.run->index());
    const bool cut = ctx.canvas.text_in(row, what, c.text, Font::small);
    if (over && (cut || time.paused_ns > 0)) ctx.tip(what + ": " + length_text(time));
    if (over && ctx.pointer.pressed[0]) {
      app.timeline.expanded.insert(rank);
      app.select_span({rank, ev::StreamId::compute}, wait);
      const std::int64_t margin = (wait.end_ns - wait.begin_ns) * 3;
      app.time.set({wait.begin_ns - margin, wait.end_ns + margin}, app.store().end_ns());
      app.follow = false;
    }
  }
}

void CommunicationView::draw(Context& ctx, Rect room) {
  const analysis::Summary& s = ctx.app.run->summary();
  if (s.ops.empty() && !s.elements_per_step) {
    ctx.empty(room, s.world == 1 ? "One rank: nothing is communicated" : "No collectives measured yet",
              s.steps > 0 ? "Of the steps so far: " +
                                analysis::missing_reason(s, "collectives", ev::Detail::modules,
                                                         ev::Capability::collectives) +
                                "."
                          : "Figures appear after the first completed steps.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  const std::string link = identify(ctx.app.store()).link;
  if (!link.empty()) {
    ctx.canvas.text_in(room.take_top(20), link + ": times below are of that link, not of this machine",
                       ctx.colors().of(Meaning::reduce), Font::small);
  }
  volume(ctx, room);
  if (room.w > 900) {
    Rect left = room.take_left((room.w - 32) / 2);
    room.take_left(32);
    operations(ctx, left);
    prefetches(ctx, left);
    overlap(ctx, left);
    by_step(ctx, left);
    waits(ctx, room);
    return;
  }
  operations(ctx, room);
  prefetches(ctx, room);
  overlap(ctx, room);
  waits(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_communication_view() { return std::make_unique<CommunicationView>(); }

}  // namespace shardscope::gui
