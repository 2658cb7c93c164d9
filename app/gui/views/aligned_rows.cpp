#include "app/gui/views/aligned_rows.h"

#include <algorithm>
#include <string>
#include <vector>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_places.h"
#include "app/gui/views/span_painter.h"
#include "app/gui/views/timeline_marks.h"
#include "app/store/lane.h"
#include "app/store/lane_name.h"

namespace shardscope::gui {
namespace {

constexpr float kNarrowestLabel = 26;  ///< pixels

}  // namespace

AlignedRows::AlignedRows(Context& ctx, const AlignedPicture& picture, std::size_t run, std::uint32_t rank)
    : ctx_(ctx),
      picture_(picture),
      run_(run),
      rank_(rank),
      store_(run == 0 ? ctx.app.run_a().store() : ctx.app.run_b()->store()) {}

float AlignedRows::width_of(std::span<const AlignedPart> parts) const {
  std::int64_t length = 0;
  for (const AlignedPart& part : parts) length += range_of(part).length();
  return static_cast<float>(static_cast<double>(length) / picture_.scale.ns_per_pixel());
}

std::optional<AlignedHit> AlignedRows::draw(Rect room) {
  const Palette& c = ctx_.colors();
  const Rect mark{room.x, room.y, 28, std::min(room.h, 16.0F)};
  ctx_.canvas.fill({mark.x, mark.y + 3, 10, 10}, c.runs[run_], 1, 2);
  ctx_.canvas.text_in({mark.x + 14, mark.y, 14, mark.h}, run_ == 0 ? "A" : "B", c.text, Font::strong);
  const Rect all{room.x + kGutter, room.y, room.w - kGutter, room.h - 2};
  const float whole_width = width_of(picture_.parts), visible_width = width_of(picture_.visible);
  for (const std::size_t at : picture_.shown) {
    const AlignedLane& lane = picture_.lanes[at];
    const Rect whole = room.take_top(picture_.row_height);
    const Rect row{all.x, whole.y, all.w, picture_.row_height - 2};
    label(lane, whole, row);
    const Clip clip(ctx_.canvas, row);
    const float width = lane.crowded[run_] ? visible_width : whole_width;
    if (lane.too_many[run_] || !few_spans(lane.spans[run_], width))
      density(lane, row);
    else
      boxes(lane, row);
  }
  const Clip clip(ctx_.canvas, all);
  ends(all);
  return hit_;
}

void AlignedRows::label(const AlignedLane& lane, const Rect& whole, const Rect& row) {
  if (picture_.row_height < kLowestRow) return;
  const auto same = [&](const AlignedLane& other) { return other.belongs_with(lane); };
  const auto of_shown = [&](std::size_t i) { return same(picture_.lanes[i]); };
  const auto first = std::ranges::find_if(picture_.lanes, same);
  if (&*first != &lane) return;
  const auto drawn = std::ranges::count_if(picture_.shown, of_shown);
  const auto known = std::ranges::count_if(picture_.lanes, same);
  const Rect place{whole.x + 30, row.y, kGutter - 34, row.h};
  // As in the timeline, where an attached run has names of its own for lanes.
  const std::string given = lane.waits() ? "waits" : store::given_lane_name(store_, {rank_, lane.stream});
  const std::string name = given.empty() ? word(lane.stream) : given;
  const bool cut = ctx_.canvas.text_in(place, name, ctx_.colors().muted, Font::small);
  if (!ctx_.hovered(place)) return;
  if (cut) ctx_.tip(name);
  if (drawn < known)
    ctx_.tip((cut ? name + ": " : "") + std::to_string(drawn) + " of " + std::to_string(known) +
             " depths are drawn: a higher panel shows the others");
}

void AlignedRows::boxes(const AlignedLane& lane, const Rect& row) {
  const Palette& c = ctx_.colors();
  const TimeScale& scale = picture_.scale;
  const std::vector<AlignedBox>& list = lane.boxes[run_];
  const auto end_of = [&](const AlignedBox& box) { return scale.x_of(box.at_ns + box.length_ns); };
  SpanPlaces places(row.x, row.right());
  for (std::size_t first = 0, next = 0; first < list.size(); first = next) {
    const store::Span& span = list[first].span;
    while (next < list.size() && list[next].span.begin_ns == span.begin_ns) ++next;
    const float begin = scale.x_of(list[first].at_ns), end = end_of(list[next - 1]);
    if (end < row.x || begin > row.right()) continue;  // out of the zoomed range
    const auto drawn = places.next(begin, std::min(row.right(), end));
    if (!drawn) continue;
    const auto [x0, x1] = *drawn;
    const Rgb color = span_color(c, lane.stream, span);
    const bool wait = store::is_wait(span.kind);
    const Rect whole{x0, row.y, std::max(1.0F, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), row.h};
    // A span in several pieces: pale in the gaps where the other run is longer, to show that it is one span.
    if (next - first > 1) ctx_.canvas.fill(whole, mix(c.panel, color, 0.45F));
    for (std::size_t i = first; i < next; ++i) {
      const float from = std::max(x0, scale.x_of(list[i].at_ns)),
                  to = std::min(end_of(list[i]), whole.right());
      if (to < x0 || from > whole.right()) continue;
      const Rect place{from, row.y, std::max(1.0F, to - from), row.h};
      ctx_.canvas.fill(place, color, wait ? 0.45F : 1.0F, next - first == 1 && place.w > 6 ? 2.0F : 0.0F);
      if (wait) ctx_.canvas.hatch(place, color, 0.9F, 5);
    }
    if (!wait) box_name(span, whole, color);
    const bool over = ctx_.hovered(whole);
    if (over) hit_ = AlignedHit{run_, {rank_, lane.stream}, span};
    if (over || (run_ == 0 && ctx_.app.selection.span && ctx_.app.selected_span({rank_, lane.stream}, span)))
      ctx_.canvas.outline(whole, over ? c.text : c.accent, 1, 1, 2);
  }
}

void AlignedRows::box_name(const store::Span& span, const Rect& box, Rgb color) {
  if (box.w <= kNarrowestLabel || box.h < kLowestRow - 2) return;
  const bool module = span.kind == ev::EventKind::module_begin;
  const Rect room = box.inset(3, 0);
  const std::string full = module ? short_module(store_, module_of(span)) : shared_name(store_, rank_, span);
  const std::string_view text = module ? ctx_.canvas.fitting_path(room.w, full, Font::small) : full;
  // The row shows the kind of collective: a truncated name adds nothing.
  if (module ? ctx_.canvas.readable_in(room.w, text, Font::small)
             : ctx_.canvas.width(text, Font::small) <= room.w + 0.5F)
    ctx_.canvas.text_in(room, text, text_on(color), Font::small);
}

void AlignedRows::density(const AlignedLane& lane, const Rect& row) {
  for (const AlignedPart& part : picture_.visible) {
    const TimeRange& range = range_of(part);
    if (range.length() <= 0) continue;
    const float x = picture_.scale.x_of(part.at_ns);
    const auto width =
        static_cast<float>(static_cast<double>(range.length()) / picture_.scale.ns_per_pixel());
    std::vector<store::Density> columns(static_cast<std::size_t>(std::max(1.0F, width / 2)));
    store_.density({rank_, lane.stream}, lane.depth, range.begin_ns, range.end_ns, columns);
    const float each = width / static_cast<float>(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const store::Density& column = columns[i];
      if (column.count == 0) continue;
      const float filled = std::max(2.0F, row.h * std::min(1.0F, column.busy));
      ctx_.canvas.fill({x + static_cast<float>(i) * each, row.bottom() - filled, each, filled},
                       ctx_.colors().of(meaning_on(lane.stream, column.dominant, column.dominant_code)));
    }
  }
}

/// Pauses, and the end of the step in this run.
void AlignedRows::ends(const Rect& all) {
  const TimeScale& scale = picture_.scale;
  for (const AlignedPart& part : picture_.visible) {
    const TimeRange& range = range_of(part);
    if (range.length() <= 0) continue;
    const Rect place{scale.x_of(part.at_ns), all.y,
                     scale.x_of(part.at_ns + range.length()) - scale.x_of(part.at_ns), all.h};
    draw_pauses(ctx_, store_, rank_, place, {range, place.x, place.w});
  }
  const AlignedPart& last = picture_.parts.back();
  ctx_.canvas.vertical(scale.x_of(last.at_ns + range_of(last).length()), all.y, all.h,
                       ctx_.colors().runs[run_], 1, 2);
}

}  // namespace shardscope::gui
