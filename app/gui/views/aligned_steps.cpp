#include "app/gui/views/aligned_steps.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/timeline_marks.h"

namespace shardscope::gui {
namespace {

/// The step at the time shown, where it has ended in both runs: of A and of B, or null.
std::pair<const store::StepRow*, const store::StepRow*> step_of_both(const AppState& app) {
  const auto steps_a = app.run->store().steps();
  const auto steps_b = app.other->store().steps();
  const auto at = measured_step_of(steps_a, app.now_ns());
  if (!at) return {};
  const store::StepRow& a = steps_a[*at];
  const auto b = std::ranges::find(steps_b, a.step, &store::StepRow::step);
  if (b == steps_b.end() || a.end_ns == store::kOpen || b->end_ns == store::kOpen) return {};
  return {&a, &*b};
}

/// Of the lane that align_steps() looks at.
std::uint64_t spans_in(const store::Store& store, const store::StepRow& step) {
  if (store.ranks().empty()) return 0;
  const store::LaneId lane{store.ranks().front().rank, ev::StreamId::compute};
  std::uint64_t out = 0;
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
    out += store.span_count(lane, depth, step.begin_ns, step.end_ns);
  return out;
}

}  // namespace

bool AlignedSteps::can_draw(const AppState& app) { return step_of_both(app).second != nullptr; }

const std::vector<AlignedPart>& AlignedSteps::parts(const AppState& app, const store::StepRow& a,
                                                    const store::StepRow& b) {
  const store::Store &store_a = app.run->store(), &store_b = app.other->store();
  const Of of{app.run->number(),
              app.other->number(),
              spans_in(store_a, a),
              spans_in(store_b, b),
              {a.begin_ns, a.end_ns},
              {b.begin_ns, b.end_ns},
              align_};
  if (of_ != of) {
    of_ = of;
    why_not_.clear();
    parts_ = align_steps(store_a, a, store_b, b, align_, &why_not_);
  }
  return parts_;
}

void AlignedSteps::draw(Context& ctx, Rect room) {
  if (room.h < 80) return;
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const auto [of_a, of_b] = step_of_both(app);
  const store::StepRow &a = *of_a, &b = *of_b;
  Rect choice{room.x, room.y + 6, room.w, 20};
  align_ = static_cast<AlignBy>(
      ctx.choice_right(choice, {"by step", "by phase", "by module"}, static_cast<int>(align_)));
  const std::vector<AlignedPart>& parts = this->parts(app, a, b);
  ctx.section(room, "Step " + std::to_string(a.step) + " of both, " +
                        (align_ == AlignBy::step || !why_not_.empty() ? "from its begin"
                         : align_ == AlignBy::phase                   ? "each phase from its begin"
                                                                      : "each module from its begin") +
                        ", on one scale" + (why_not_.empty() ? "" : "; not aligned: " + why_not_));
  if (parts.empty()) return;
  const Rect ruler = room.take_bottom(16);
  const float gutter = 84;
  const Rect lanes{room.x + gutter, room.y, room.w - gutter, room.h};
  const TimeScale scale{{0, parts.back().at_ns + parts.back().length_ns}, lanes.x, lanes.w};
  marks(ctx, parts, scale, lanes, ruler);
  constexpr std::array kLanes{ev::StreamId::compute, ev::StreamId::gather, ev::StreamId::reduce};
  const float h = std::clamp((room.h - 8) / 6, 6.0F, 22.0F);
  float y = room.y;
  for (std::size_t run = 0; run < 2; ++run) {
    const store::Store& store = run == 0 ? app.run->store() : app.other->store();
    if (store.ranks().empty()) continue;
    const std::uint32_t rank = store.ranks().front().rank;
    for (const ev::StreamId stream : kLanes) {
      const Rect row{lanes.x, y, lanes.w, h - 2};
      y += h;
      if (stream == ev::StreamId::compute) {
        ctx.canvas.fill({room.x, row.y + 2, 10, 10}, c.runs[run], 1, 2);
        ctx.canvas.text_in({room.x + 14, row.y, 14, 14}, run == 0 ? "A" : "B", c.text, Font::strong);
      }
      if (h >= 12)
        ctx.canvas.text_in({room.x + 30, row.y, gutter - 34, row.h}, word(stream), c.muted, Font::small);
      for (const AlignedPart& piece : parts)
        lane(ctx, store, {rank, stream}, run == 0 ? piece.a : piece.b, scale.x_of(piece.at_ns), scale, row);
    }
    const AlignedPart& last = parts.back();
    const std::int64_t end = last.at_ns + (run == 0 ? last.a : last.b).length();
    ctx.canvas.vertical(scale.x_of(end), y - 3 * h, 3 * h - 2, c.runs[run], 1, 2);
    y += 6;
  }
}

/// Times from the begin; aligned by parts, a time of the scale is of neither run, and the parts are named.
void AlignedSteps::marks(Context& ctx, const std::vector<AlignedPart>& parts, const TimeScale& scale,
                         const Rect& lanes, const Rect& ruler) const {
  const Palette& c = ctx.colors();
  if (align_ == AlignBy::step || !why_not_.empty()) {
    for (const Tick& tick : time_ticks(scale, 90)) {
      ctx.canvas.text(scale.x_of(tick.at_ns) + 3, ruler.y + 1, tick.label, c.muted, Font::mono_small);
      ctx.canvas.vertical(scale.x_of(tick.at_ns), lanes.y, lanes.h, c.line, 0.7F);
    }
    return;
  }
  for (const AlignedPart& piece : parts) {
    const float x0 = scale.x_of(piece.at_ns);
    const float x1 = scale.x_of(piece.at_ns + piece.length_ns);
    ctx.canvas.vertical(x0, lanes.y, lanes.h, c.line, 0.9F);
    const Rect place{x0 + 3, ruler.y, x1 - x0 - 6, ruler.h};
    const auto length = [](const TimeRange& range) { return duration(range.length()).text(); };
    const std::string text = piece.name + "  A " + length(piece.a) + "  B " + length(piece.b);
    if (!piece.name.empty() && place.w > 20) {
      const bool whole = ctx.canvas.width(text, Font::small) <= place.w;
      const auto chars = static_cast<std::size_t>(place.w / 6);
      ctx.canvas.text_in(place, whole ? text : std::string(short_path(tail_path(piece.name), chars)), c.muted,
                         Font::small);
    }
    if (ctx.hovered({x0, ruler.y, x1 - x0, ruler.h}))
      ctx.tip(piece.name.empty() ? "between the aligned parts" + text : text);
  }
}

/// A stretch of a lane, as much of the row as it is long.
void AlignedSteps::lane(Context& ctx, const store::Store& store, store::LaneId id, const TimeRange& range,
                        float x, const TimeScale& scale, const Rect& row) {
  if (range.length() <= 0) return;
  const auto width = static_cast<float>(static_cast<double>(range.length()) / scale.ns_per_pixel());
  const Rect place{x, row.y, width, row.h};
  std::vector<store::Density> columns(static_cast<std::size_t>(std::max(1.0F, width / 2)));
  store.density(id, 0, range.begin_ns, range.end_ns, columns);
  const float each = width / static_cast<float>(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const store::Density& column = columns[i];
    if (column.count == 0) continue;
    const float filled = std::max(2.0F, row.h * std::min(1.0F, column.busy));
    ctx.canvas.fill({place.x + static_cast<float>(i) * each, row.bottom() - filled, each, filled},
                    ctx.colors().of(meaning_on(id.stream, column.dominant, column.dominant_code)));
  }
  draw_pauses(ctx, store, id.rank, place, {range, place.x, place.w});
}

}  // namespace shardscope::gui
