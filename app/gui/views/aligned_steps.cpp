#include "app/gui/views/aligned_steps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_places.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/span_painter.h"
#include "app/gui/views/timeline_marks.h"
#include "app/store/lane.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

// Pixels.
constexpr float kGutter = 84;     ///< width of the row labels
constexpr float kBetween = 6;     ///< between the runs
constexpr float kLowestRow = 11;  ///< with less height inner depths are left out
constexpr float kHighestRow = 20;
constexpr float kNarrowestLabel = 26;

/// The current step of A and of B, if it has ended in both runs; else nulls.
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

/// Approximate number of spans in the drawn lanes.
std::uint64_t spans_in(const store::Store& store, const store::StepRow& step) {
  if (store.ranks().empty()) return 0;
  std::uint64_t out = 0;
  for (const ev::StreamId stream : {ev::StreamId::compute, ev::StreamId::gather, ev::StreamId::reduce}) {
    const store::LaneId lane{store.ranks().front().rank, stream};
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
      out += store.span_count(lane, depth, step.begin_ns, step.end_ns);
  }
  return out;
}

}  // namespace

bool AlignedSteps::can_draw(const AppState& app) { return step_of_both(app).second != nullptr; }

void AlignedSteps::prepare(const AppState& app, const store::StepRow& a, const store::StepRow& b) {
  const store::Store &store_a = app.run->store(), &store_b = app.other->store();
  const Of of{app.run->number(),
              app.other->number(),
              spans_in(store_a, a),
              spans_in(store_b, b),
              {a.begin_ns, a.end_ns},
              {b.begin_ns, b.end_ns},
              align_};
  if (of_ == of) return;
  of_ = of;
  why_not_.clear();
  parts_ = align_steps(store_a, a, store_b, b, align_, &why_not_);
  lanes_ = aligned_lanes(store_a, a, store_b, b, parts_);
}

void AlignedSteps::draw(Context& ctx, Rect room) {
  if (room.h < 80) return;
  const AppState& app = ctx.app;
  const auto [of_a, of_b] = step_of_both(app);
  const store::StepRow &a = *of_a, &b = *of_b;
  Rect choice{room.x, room.y + 6, room.w, 20};
  align_ = static_cast<AlignBy>(
      ctx.choice_right(choice, {"by step", "by phase", "by module"}, static_cast<int>(align_)));
  prepare(app, a, b);
  ctx.section(room, "Step " + std::to_string(a.step) + " of both, " +
                        (align_ == AlignBy::step || !why_not_.empty() ? "from its begin"
                         : align_ == AlignBy::phase                   ? "each phase from its begin"
                                                                      : "each module from its begin") +
                        ", on one scale" + (why_not_.empty() ? "" : "; not aligned: " + why_not_));
  if (parts_.empty() || lanes_.empty()) return;
  const Rect ruler = room.take_bottom(16);
  const Rect lanes{room.x + kGutter, room.y, room.w - kGutter, room.h};
  const TimeScale scale{{0, parts_.back().at_ns + parts_.back().length_ns}, lanes.x, lanes.w};
  marks(ctx, scale, lanes, ruler);
  const float half = (room.h - kBetween) / 2;
  const std::vector<std::size_t> shown = lanes_in(lanes_, static_cast<std::size_t>(half / kLowestRow));
  const float h = std::clamp(half / static_cast<float>(shown.size()), 4.0F, kHighestRow);
  for (std::size_t run = 0; run < 2; ++run) {
    this->lanes(ctx, run, shown, scale, room.take_top(h * static_cast<float>(shown.size())), h);
    room.take_top(kBetween);
  }
}

void AlignedSteps::lanes(Context& ctx, std::size_t run, std::span<const std::size_t> shown,
                         const TimeScale& scale, Rect room, float h) const {
  const Palette& c = ctx.colors();
  const store::Store& store = run == 0 ? ctx.app.run->store() : ctx.app.other->store();
  if (store.ranks().empty()) return;
  const std::uint32_t rank = store.ranks().front().rank;
  const Rect mark{room.x, room.y, 28, std::min(room.h, 16.0F)};
  ctx.canvas.fill({mark.x, mark.y + 3, 10, 10}, c.runs[run], 1, 2);
  ctx.canvas.text_in({mark.x + 14, mark.y, 14, mark.h}, run == 0 ? "A" : "B", c.text, Font::strong);
  const Rect all{room.x + kGutter, room.y, room.w - kGutter, room.h - 2};
  std::int64_t length = 0;  // of the step on the scale, without gaps where the other run is longer
  for (const AlignedPart& piece : parts_) length += (run == 0 ? piece.a : piece.b).length();
  const auto width = static_cast<float>(static_cast<double>(length) / scale.ns_per_pixel());
  for (const std::size_t at : shown) {
    const AlignedLane& lane = lanes_[at];
    const Rect whole = room.take_top(h);
    const Rect row{all.x, whole.y, all.w, h - 2};
    if (lane.depth == 0 && h >= kLowestRow) {
      const auto of_stream = [&](std::size_t i) { return lanes_[i].stream == lane.stream; };
      const auto drawn = std::ranges::count_if(shown, of_stream);
      const auto known = std::ranges::count(lanes_, lane.stream, &AlignedLane::stream);
      const Rect label{whole.x + 30, row.y, kGutter - 34, row.h};
      ctx.canvas.text_in(label, word(lane.stream), c.muted, Font::small);
      if (drawn < known && ctx.hovered(label))
        ctx.tip(std::to_string(drawn) + " of " + std::to_string(known) +
                " depths are drawn: a higher panel shows the others");
    }
    if (lane.too_many[run] || !few_spans(lane.spans[run], width)) {
      for (const AlignedPart& piece : parts_)
        density(ctx, store, {rank, lane.stream}, lane.depth, run == 0 ? piece.a : piece.b,
                scale.x_of(piece.at_ns), scale, row);
    } else {
      boxes(ctx, run, lane, scale, row);
    }
  }
  for (const AlignedPart& piece : parts_) {
    const TimeRange& range = run == 0 ? piece.a : piece.b;
    if (range.length() <= 0) continue;
    const Rect place{scale.x_of(piece.at_ns), all.y,
                     scale.x_of(piece.at_ns + range.length()) - scale.x_of(piece.at_ns), all.h};
    draw_pauses(ctx, store, rank, place, {range, place.x, place.w});
  }
  const AlignedPart& last = parts_.back();
  const std::int64_t end = last.at_ns + (run == 0 ? last.a : last.b).length();
  ctx.canvas.vertical(scale.x_of(end), all.y, all.h, c.runs[run], 1, 2);
}

void AlignedSteps::boxes(Context& ctx, std::size_t run, const AlignedLane& lane, const TimeScale& scale,
                         const Rect& row) {
  const Palette& c = ctx.colors();
  const store::Store& store = run == 0 ? ctx.app.run->store() : ctx.app.other->store();
  const std::uint32_t rank = store.ranks().front().rank;
  const std::vector<AlignedBox>& list = lane.boxes[run];
  const auto end_of = [&](const AlignedBox& box) {
    return std::min(row.right(), scale.x_of(box.at_ns + box.length_ns));
  };
  SpanPlaces places(row.x, row.right());
  for (std::size_t first = 0, next = 0; first < list.size(); first = next) {
    const store::Span& span = list[first].span;
    while (next < list.size() && list[next].span.begin_ns == span.begin_ns) ++next;
    const auto drawn = places.next(scale.x_of(list[first].at_ns), end_of(list[next - 1]));
    if (!drawn) continue;
    const auto [x0, x1] = *drawn;
    const Rgb color = span_color(c, lane.stream, span);
    const bool wait = store::is_wait(span.kind);
    const Rect whole{x0, row.y, std::max(1.0F, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), row.h};
    // A span in several pieces: pale in the gaps where the other run is longer, to show that it is one span.
    if (next - first > 1) ctx.canvas.fill(whole, mix(c.panel, color, 0.45F));
    for (std::size_t i = first; i < next; ++i) {
      const float from = std::max(x0, scale.x_of(list[i].at_ns));
      const Rect place{from, row.y, std::max(1.0F, std::min(end_of(list[i]), whole.right()) - from), row.h};
      ctx.canvas.fill(place, color, wait ? 0.45F : 1.0F, next - first == 1 && place.w > 6 ? 2.0F : 0.0F);
      if (wait) ctx.canvas.hatch(place, color, 0.9F, 5);
    }
    const std::string name = shared_name(store, rank, span);
    if (whole.w > kNarrowestLabel && whole.h >= kLowestRow - 2 && !wait) {
      const bool module = span.kind == ev::EventKind::module_begin;
      const Rect room = whole.inset(3, 0);
      const std::string full = module ? short_module(store, module_of(span)) : name;
      const std::string_view text = module ? ctx.canvas.fitting_path(room.w, full, Font::small) : full;
      // The row shows the kind of collective: a truncated name adds nothing.
      if (module ? ctx.canvas.readable_in(room.w, text, Font::small)
                 : ctx.canvas.width(text, Font::small) <= room.w + 0.5F)
        ctx.canvas.text_in(room, text, text_on(color), Font::small);
    }
    if (ctx.hovered(whole))
      ctx.tip(name + ", " + (run == 0 ? "A: " : "B: ") +
              duration(store::time_of(store, rank, span).running_ns).text());
  }
}

/// Times from the begin; aligned by parts, the names of the parts, since the scale has no time of its own.
void AlignedSteps::marks(Context& ctx, const TimeScale& scale, const Rect& lanes, const Rect& ruler) const {
  const Palette& c = ctx.colors();
  if (align_ == AlignBy::step || !why_not_.empty()) {
    for (const Tick& tick : time_ticks(scale, 90)) {
      ctx.canvas.text(scale.x_of(tick.at_ns) + 3, ruler.y + 1, tick.label, c.muted, Font::mono_small);
      ctx.canvas.vertical(scale.x_of(tick.at_ns), lanes.y, lanes.h, c.line, 0.7F);
    }
    return;
  }
  for (const AlignedPart& piece : parts_) {
    const float x0 = scale.x_of(piece.at_ns);
    const float x1 = scale.x_of(piece.at_ns + piece.length_ns);
    ctx.canvas.vertical(x0, lanes.y, lanes.h, c.line, 0.9F);
    const Rect place{x0 + 3, ruler.y, x1 - x0 - 6, ruler.h};
    const auto length = [](const TimeRange& range) { return duration(range.length()).text(); };
    const std::string text = piece.name + "  A " + length(piece.a) + "  B " + length(piece.b);
    if (!piece.name.empty() && place.w > 20) {
      const bool whole = ctx.canvas.width(text, Font::small) <= place.w;
      const std::string_view name = ctx.canvas.fitting_path(place.w, tail_path(piece.name), Font::small);
      ctx.canvas.text_in(place, whole ? text : name, c.muted, Font::small);
    }
    if (ctx.hovered({x0, ruler.y, x1 - x0, ruler.h}))
      ctx.tip(piece.name.empty() ? "between the aligned parts" + text : text);
  }
}

void AlignedSteps::density(Context& ctx, const store::Store& store, store::LaneId id, std::uint8_t depth,
                           const TimeRange& range, float x, const TimeScale& scale, const Rect& row) {
  if (range.length() <= 0) return;
  const auto width = static_cast<float>(static_cast<double>(range.length()) / scale.ns_per_pixel());
  std::vector<store::Density> columns(static_cast<std::size_t>(std::max(1.0F, width / 2)));
  store.density(id, depth, range.begin_ns, range.end_ns, columns);
  const float each = width / static_cast<float>(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const store::Density& column = columns[i];
    if (column.count == 0) continue;
    const float filled = std::max(2.0F, row.h * std::min(1.0F, column.busy));
    ctx.canvas.fill({x + static_cast<float>(i) * each, row.bottom() - filled, each, filled},
                    ctx.colors().of(meaning_on(id.stream, column.dominant, column.dominant_code)));
  }
}

}  // namespace shardscope::gui
