// Compare: two runs, metric by metric, with the spread over steps and a verdict that the numbers bear.
#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {
namespace {

constexpr float kComparisonRow = 26;

class CompareView final : public View {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view title() const override { return "Compare"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void verdict(Context& ctx, Rect& room);
  void table(Context& ctx, Rect& room);
  void steps(Context& ctx, Rect& room);
  void changes(Context& ctx, Rect room);

  analysis::Comparison comparison_;
  std::shared_ptr<const Analysis> of_a_, of_b_;  ///< that it is made from
  float scroll_ = 0;
};

std::string run_name(const Session& run) {
  const std::size_t slash = run.source().rfind('/');
  return slash == std::string::npos ? run.source() : run.source().substr(slash + 1);
}

void CompareView::header(Context& ctx, Rect& room) {
  if (!ctx.app.other) return;
  if (ctx.button_right(room, "Swap A and B", true, Context::Look::plain,
                       "Show the other run in all panels")) {
    std::swap(ctx.app.run, ctx.app.other);
    ctx.app.selection = {};
    ctx.app.time_placed = false;
    ctx.app.cursor_ns.reset();
    of_a_.reset();
  }
}

/// A value of a metric in the unit it comes with, scaled to be read.
std::string value_text(const std::optional<double>& value, const std::string& unit) {
  if (!value || !std::isfinite(*value)) return kMissing;
  if (unit == "ms") return milliseconds(value).text();
  if (unit == "bytes" || unit == "B") return bytes(static_cast<std::int64_t>(*value)).text();
  if (unit == "%") return percent(value).text();
  return count(*value, unit.c_str()).text();
}

void CompareView::verdict(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const float h = ctx.canvas.paragraph_height(room.w - 28, comparison_.verdict, Font::body) + 16;
  const Rect box = room.take_top(std::min(h, room.h));
  ctx.canvas.fill(box, c.accent, 0.12F, 3);
  ctx.canvas.fill({box.x, box.y, 4, box.h}, c.accent, 1, 2);
  ctx.canvas.paragraph({box.x + 16, box.y + 8, box.w - 28, box.h - 8}, comparison_.verdict, c.text);
  room.take_top(8);
}

void CompareView::table(Context& ctx, Rect& room) {
  const Palette& c = ctx.colors();
  const float column = std::clamp(room.w * 0.19F, 96.0F, 190.0F);
  const float delta = std::clamp(room.w * 0.22F, 90.0F, 260.0F);
  Rect head = room.take_top(22);
  const Rect delta_head = head.take_right(delta);
  ctx.canvas.text_in({delta_head.x + 16, delta_head.y, delta_head.w - 16, delta_head.h}, "B against A",
                     c.muted, Font::small);
  ctx.canvas.text_in(head.take_right(column), comparison_.simulated_b ? "B, simulated" : "B", c.muted,
                     Font::small, Align::right);
  ctx.canvas.text_in(head.take_right(column), comparison_.simulated_a ? "A, simulated" : "A", c.muted,
                     Font::small, Align::right);
  ctx.canvas.text_in(head, "metric, ± half the interquartile range over steps", c.muted, Font::small);
  ctx.canvas.horizontal(room.x, head.bottom() - 1, room.w, c.line);
  for (const analysis::Difference& row : comparison_.metrics) {
    if (room.h < kComparisonRow) return;
    Rect line = room.take_top(kComparisonRow);
    const Rect whole = line;
    const Rect bar = line.take_right(delta);
    const auto cell = [&](const std::optional<double>& value, double spread) {
      const Rect place = line.take_right(column);
      std::string text = value_text(value, row.unit);
      if (value && spread > 0) {
        const std::string plus = "±" + value_text(spread, row.unit);
        const float w = std::min(place.w * 0.48F, ctx.canvas.width(plus, Font::mono_small) + 6);
        ctx.canvas.text_in({place.right() - w, place.y, w, place.h}, plus, c.muted, Font::mono_small,
                           Align::right);
        ctx.canvas.text_in({place.x, place.y, place.w - w, place.h}, text, c.text, Font::mono, Align::right);
      } else {
        ctx.canvas.text_in(place, text, value ? c.text : c.muted, Font::mono, Align::right);
      }
    };
    cell(row.b, row.spread_b);
    cell(row.a, row.spread_a);
    if (ctx.canvas.text_in(line, row.metric, c.text, Font::small) && ctx.hovered(line)) ctx.tip(row.metric);
    ctx.canvas.horizontal(whole.x, whole.bottom() - 1, whole.w, c.line, 0.6F);
    if (!row.a || !row.b || *row.a == 0) continue;
    const double change = 100 * (*row.b - *row.a) / std::fabs(*row.a);
    const bool in_noise = std::fabs(*row.b - *row.a) <= row.spread_a + row.spread_b;
    const bool better = row.lower_is_better ? change < 0 : change > 0;
    const Rgb color = in_noise || change == 0 ? c.muted
                      : better                ? c.of(Meaning::gather)
                                              : c.of(Meaning::trouble);
    const float middle = bar.x + 16 + (bar.w - 92) / 2;
    const auto length = static_cast<float>(std::clamp(change / 100, -1.0, 1.0)) * (bar.w - 92) / 2;
    ctx.canvas.vertical(middle, bar.y + 5, bar.h - 10, c.line);
    const Rect fill{std::min(middle, middle + length), bar.y + 8, std::fabs(length), bar.h - 16};
    ctx.canvas.fill(fill, color, 0.9F);
    if (!better && !in_noise) ctx.canvas.hatch(fill, c.panel, 0.4F, 5);
    const std::string text = std::string(change > 0 ? "+" : "")
                                 .append(decimal(change, std::fabs(change) < 10 ? 1 : 0))
                                 .append(" %");
    ctx.canvas.text_in({bar.right() - 72, bar.y, 72, bar.h}, text, in_noise ? c.muted : c.text, Font::mono,
                       Align::right);
    if (ctx.hovered(bar))
      ctx.tip(in_noise ? "Within the spread over steps: no difference that these steps can show"
              : better ? "Better than A"
                       : "Worse than A");
  }
}

void CompareView::steps(Context& ctx, Rect& room) {
  if (room.h < 130) return;
  ctx.section(room, "Step time of both runs, ms");
  const Palette& c = ctx.colors();
  Rect area = room.take_top(std::clamp(room.h * 0.45F, 90.0F, 220.0F));
  const auto& a = ctx.app.run->summary().step_ms;
  const auto& b = ctx.app.other->summary().step_ms;
  const float w = (area.w - 24) / 2;
  plot_series(ctx, area.take_left(w), {"A", "ms", a, 0, c.of(Meaning::compute), true, 1});
  area.take_left(24);
  plot_series(ctx, area, {"B", "ms", b, 0, c.of(Meaning::gather), true, 1});
}

void CompareView::changes(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  if (room.h < 50) return;
  ctx.section(room, "Changed settings, A to B");
  if (comparison_.config_changes.empty()) {
    ctx.canvas.text_in(room.take_top(22), "The configurations are the same.", c.muted, Font::small);
    return;
  }
  ctx.scroll(this, room, 22 * static_cast<float>(comparison_.config_changes.size()), scroll_);
  const Clip clip(ctx.canvas, room);
  float y = room.y - scroll_;
  for (const std::string& change : comparison_.config_changes) {
    const Rect line{room.x, y, room.w - 10, 22};
    if (ctx.canvas.text_in(line, change, c.text, Font::mono_small) && ctx.hovered(line)) ctx.tip(change);
    y += 22;
  }
}

void CompareView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.other) {
    ctx.empty(room, "One run is open",
              "Start with two recordings to compare them: shardscope view A.zscope B.zscope. "
              "`shardscope ab` makes such a pair.");
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
  }
  const Palette& c = ctx.colors();
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  for (const auto& [letter, run] : {std::pair{"A", app.run.get()}, std::pair{"B", app.other.get()}}) {
    Rect line = room.take_top(22);
    ctx.canvas.text_in(line.take_left(20), letter, c.accent, Font::strong);
    const Identity identity = identify(run->store());
    std::string facts = identity.model;
    for (const std::string& fact : identity.facts) facts += ", " + fact;
    if (!identity.link.empty()) facts += ", " + identity.link;
    const std::string name = run_name(*run);
    ctx.canvas.text_in(line.take_left(std::min(line.w * 0.5F, ctx.canvas.width(name, Font::body) + 12)), name,
                       c.text);
    ctx.canvas.text_in(line, facts, c.muted, Font::small);
  }
  room.take_top(6);
  verdict(ctx, room);
  table(ctx, room);
  steps(ctx, room);
  changes(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_compare_view() { return std::make_unique<CompareView>(); }

}  // namespace shardscope::gui
