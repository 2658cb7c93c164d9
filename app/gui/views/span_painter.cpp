#include "app/gui/views/span_painter.h"

#include <algorithm>
#include <cmath>

#include "app/analysis/gpu_activity.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_places.h"
#include "app/gui/model/span_text.h"
#include "app/gui/views/timeline_marks.h"
#include "app/store/gather_contents.h"
#include "app/store/lane.h"

namespace shardscope::gui {
namespace {

/// Width of a density column: finer cannot be distinguished.
constexpr float kDensityColumn = 2;
constexpr float kNarrowestLabel = 22;
/// Offset of a label in its span.
constexpr float kLabelFrom = 4;

}  // namespace

Rgb span_color(const Palette& c, ev::StreamId lane, const store::Span& one) {
  const Meaning meaning = meaning_on(lane, one.kind, one.code);
  const Rgb color = c.of(meaning);
  if (meaning == Meaning::neutral || one.kind == ev::EventKind::phase_begin)
    return mix(c.panel, color, 0.45F);
  if (one.kind != ev::EventKind::module_begin) return color;
  const Rgb receding = mix(color, c.panel, std::max(0.0F, 0.50F - 0.12F * static_cast<float>(one.depth)));
  const bool backward = ev::as<ev::EventKind::module_begin>(one).pass == ev::Pass::backward;
  return backward ? mix(receding, c.base, 0.22F) : receding;
}

std::optional<store::Span> SpanPainter::lane(const TimelineRow& row, const Rect& rect) {
  const store::Store& data = ctx_.app.store();
  // A click ends with the release, while the pan still holds the pointer.
  const bool over = ctx_.under_pointer(rect);
  const std::int64_t at = scale_.time_of(ctx_.pointer.x);
  const auto slack = static_cast<std::int64_t>(scale_.ns_per_pixel() * 2);
  if (row.kind == RowKind::waits) {
    waits(row.rank, rect);
    if (!over) return std::nullopt;
    const auto all = ctx_.app.run->index().waits(row.rank);
    const auto [first, last] = RunIndex::overlapping(all, at - slack, at + slack + 1);
    return first < last ? std::optional(all[first]) : std::nullopt;
  }
  if (few(row.lane(), row.depth, rect)) {
    const auto list = data.spans(row.lane(), row.depth, scale_.range.begin_ns, scale_.range.end_ns);
    if (ev::is_gpu_stream(row.lane().stream)) gpu_gaps(row, rect, list);
    spans(row, rect, list);
  } else {
    density(row.lane(), row.depth, rect, 2);
    folded_ = folded_ || over;
  }
  if (!over) return std::nullopt;
  const auto found = span_at(data, row.lane(), row.depth, at, slack);
  return found && !hides(ctx_.app.timeline.view, found->kind) ? found : std::nullopt;
}

bool SpanPainter::few(store::LaneId lane, std::uint8_t depth, const Rect& rect) const {
  const store::Store& data = ctx_.app.store();
  const auto count = data.span_count(lane, depth, scale_.range.begin_ns, scale_.range.end_ns);
  return few_spans(count, rect.w) && data.ready(lane, scale_.range.begin_ns, scale_.range.end_ns);
}

void SpanPainter::spans(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list) {
  SpanPlaces places(rect.x, rect.right());
  const std::int64_t known_until = store::known_until(ctx_.app.store(), row.rank);
  for (const store::Span& one : list) {
    if (hides(ctx_.app.timeline.view, one.kind)) continue;
    const std::int64_t end = one.end_ns == store::kOpen ? std::max(known_until, one.begin_ns) : one.end_ns;
    if (const auto place = places.next(scale_.x_of(one.begin_ns), scale_.x_of(end)))
      span(row, rect, one, place->x0, place->x1);
  }
}

void SpanPainter::span(const TimelineRow& row, const Rect& rect, const store::Span& one, float x0, float x1) {
  Canvas& canvas = ctx_.canvas;
  const Palette& c = ctx_.colors();
  const Rgb color = span_color(c, row.lane().stream, one);
  const float gap = x1 - x0 > 4 ? 1.0F : 0.0F;
  const Rect box{x0, rect.y, std::max(1.0F, x1 - x0 - gap), rect.h};
  // Waits are hatched: colour must not be the only sign.
  const bool wait = store::is_wait(one.kind) || one.kind == ev::EventKind::gpu_sync_begin;
  if (wait && strip_) canvas.fill(box, c.panel);
  canvas.fill(box, color, wait ? 0.45F : 1.0F, box.w > 6 ? 2.0F : 0.0F);
  if (wait) canvas.hatch(box, color, 0.9F, 5);
  bool hatched = wait || one.kind == ev::EventKind::paused_begin;  // below the begin of the label
  if (one.kind == ev::EventKind::module_begin &&
      ev::as<ev::EventKind::module_begin>(one).pass == ev::Pass::recompute) {
    hatched = true;
    canvas.hatch(box, c.panel, 0.35F, 7);
  }
  if (one.kind == ev::EventKind::paused_begin) canvas.hatch(box, c.muted, 0.6F, 7);
  if (one.kind == ev::EventKind::collective_begin) {
    if (one.mark_ns > one.begin_ns) {
      // Before the last rank had arrived the collective waited and moved no bytes.
      const float arrived = std::min(box.right(), scale_.x_of(one.mark_ns));
      if (arrived - x0 > 2) {
        hatched = arrived > x0 + kLabelFrom;
        canvas.fill({x0, rect.y, arrived - x0, rect.h}, c.panel, 0.6F);
        canvas.hatch({x0, rect.y, arrived - x0, rect.h}, color, 0.7F, 5);
      }
    }
    if (row.kind == RowKind::gather && !ctx_.app.timeline.view.hides(ItemClass::marks))
      gather_marks(row, rect, one, x0, box.right());
  }
  // Highlight spans with the name of the one under the pointer.
  const std::optional<store::Span>& like = ctx_.app.hovered_span;
  if (like && box.w >= 3 && alike(one, *like)) canvas.outline(box, c.text, 0.8F, 1, 2);
  if (ctx_.app.selected_span(row.lane(), one)) {
    canvas.outline({box.x - 1, box.y - 1, box.w + 2, box.h + 2}, c.text, 1, 2);
  }
  if (box.w > kNarrowestLabel && !strip_) {
    const Rect place = beside_flushes(row, box.inset(kLabelFrom, 0));
    const bool barrier = one.kind == ev::EventKind::collective_begin &&
                         ev::as<ev::EventKind::collective_begin>(one).op == ev::CollectiveOp::barrier;
    const std::string text =
        barrier ? ctx_.app.barriers.of(ctx_.app.run->number(), ctx_.app.store(), row.lane(), one)
                : label(row, one, place.w);
    // A truncated figure would be a wrong figure.
    const bool whole = store::is_wait(one.kind);
    if (whole ? canvas.width(text, Font::small) > place.w : !canvas.readable_in(place.w, text, Font::small))
      return;
    if (hatched)
      canvas.text_on_plate(place, text, c.text, c.panel, Font::small);
    else
      canvas.text_in(place, text, text_on(color), Font::small);
  }
}

void SpanPainter::gpu_gaps(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list) {
  constexpr float kNarrowest = 5;
  const Palette& c = ctx_.colors();
  for (std::size_t i = 1; i < list.size(); ++i) {
    const analysis::Interval gap{list[i - 1].end_ns, list[i].begin_ns};
    const float x0 = std::max(rect.x, scale_.x_of(gap.begin));
    const float x1 = std::min(rect.right(), scale_.x_of(gap.end));
    if (x1 - x0 < kNarrowest) continue;
    const analysis::GapTimes parts = analysis::explain_gap_before(ctx_.app.store(), row.lane(), gap, list[i]);
    const auto most = std::max_element(parts.begin(), parts.end());
    if (*most == 0) continue;  // a pause, drawn on the host lane
    const auto cause = static_cast<analysis::GapCause>(most - parts.begin());
    const Rect box{x0, rect.y + rect.h / 2 - 3, x1 - x0 - 1, 6};
    const bool quiet =
        cause == analysis::GapCause::nothing_to_do || cause == analysis::GapCause::queued_while_computing;
    const bool late =
        !quiet && cause != analysis::GapCause::queued && cause != analysis::GapCause::unexplained;
    const Rgb color = late ? c.of(Meaning::trouble) : c.muted;
    if (!quiet) {
      ctx_.canvas.fill(box, color, 0.16F);
      ctx_.canvas.hatch(box, color, 0.7F, 5);
    }
    const std::string words = analysis::words_of(cause);
    const float width = ctx_.canvas.width(words, Font::small) + 8;
    if (width < box.w) {
      const Rect text{box.x + (box.w - width) / 2, rect.y, width, rect.h};
      ctx_.canvas.fill(text, c.panel, 1);
      ctx_.canvas.text_in(text, words, quiet ? c.muted : c.text, Font::small, Align::centre);
    }
  }
}

void SpanPainter::gather_marks(const TimelineRow& row, const Rect& rect, const store::Span& one, float x0,
                               float x1) {
  const Fetch* fetch = ctx_.app.run->index().fetch_of(row.rank, one);
  if (fetch == nullptr) return;
  const Palette& c = ctx_.colors();
  switch (fetch->outcome()) {
    case FetchOutcome::late:
      ctx_.canvas.fill({x0, rect.y, std::min(3.0F, std::max(1.0F, (x1 - x0) / 2)), rect.h},
                       c.of(Meaning::trouble));
      break;
    case FetchOutcome::early: {
      const float used = std::min(rect.right(), scale_.x_of(fetch->used_ns));
      if (used > x1) {
        ctx_.canvas.fill({x1, rect.y + rect.h / 2 - 1, used - x1, 2}, c.muted, 0.6F);
        ctx_.canvas.vertical(used - 1, rect.y + 5, rect.h - 10, c.muted, 0.8F);
      }
      break;
    }
    case FetchOutcome::unused:
      ctx_.canvas.outline({x0, rect.y, x1 - x0, rect.h}, c.of(Meaning::trouble));
      break;
    default:
      break;
  }
}

void SpanPainter::density(store::LaneId lane, std::uint8_t depth, const Rect& rect, float least) {
  columns_.assign(static_cast<std::size_t>(std::max(1.0F, std::ceil(rect.w / kDensityColumn))), {});
  const TimeScale& s = scale_;
  ctx_.app.store().density(lane, depth, s.range.begin_ns, s.range.end_ns, columns_);
  const Palette& c = ctx_.colors();
  for (std::size_t i = 0; i < columns_.size();) {
    const store::Density& column = columns_[i];
    std::size_t next = i + 1;
    // Merge similar neighbours into one rectangle.
    while (next < columns_.size() && columns_[next].dominant == column.dominant &&
           columns_[next].dominant_code == column.dominant_code &&
           std::fabs(columns_[next].busy - column.busy) < 0.03F) {
      ++next;
    }
    if (column.busy > 0 && !hides(ctx_.app.timeline.view, column.dominant)) {
      const float h = std::max(least, column.busy * rect.h);
      const float x = rect.x + static_cast<float>(i) * kDensityColumn;
      const float right = std::min(rect.right(), rect.x + static_cast<float>(next) * kDensityColumn);
      Rgb color = c.of(meaning_on(lane.stream, column.dominant, column.dominant_code));
      ctx_.canvas.fill({x, rect.bottom() - h, right - x, h}, color, 0.9F);
    }
    i = next;
  }
}

void SpanPainter::waits(std::uint32_t rank, const Rect& rect) {
  const TimelineRow row{RowKind::waits, rank};
  if (ctx_.app.run->index().covers(scale_.range.begin_ns, scale_.range.end_ns)) {
    const auto all = ctx_.app.run->index().waits(rank);
    const auto [first, last] = RunIndex::overlapping(all, scale_.range.begin_ns, scale_.range.end_ns);
    if (few_spans(last - first, rect.w)) {
      spans(row, rect, all.subspan(first, last - first));
      open_waits(row, rect);
      return;
    }
  }
  // Too many to draw: the waiting share of each column.
  density({rank, ev::StreamId::compute}, store::Store::kWaits, rect, 2);
}

/// Open waits, which the index does not contain before their end.
void SpanPainter::open_waits(const TimelineRow& row, const Rect& rect) {
  const store::Store& data = ctx_.app.store();
  const store::LaneId lane{row.rank, ev::StreamId::compute};
  const std::int64_t at = store::known_until(data, row.rank);
  // Far from the view this reads other blocks: within the time of the frame, as all that is drawn.
  if (!data.ready(lane, at - 1, at + 1)) return;
  for (std::uint8_t depth = 0; depth < data.depth_count(lane); ++depth) {
    data.for_each_span(lane, depth, at - 1, at + 1, [&](const store::Span& span) {
      if (span.end_ns == store::kOpen && store::is_wait(span.kind)) spans(row, rect, std::span(&span, 1));
    });
  }
}

void SpanPainter::rank_strip(std::uint32_t rank, const Rect& rect) {
  const store::Store& data = ctx_.app.store();
  const store::LaneId compute{rank, ev::StreamId::compute};
  Rect room = rect;
  const Rect reduce = room.take_bottom(3);
  room.take_bottom(1);
  const Rect gather = room.take_bottom(3);
  room.take_bottom(1);
  // Phases as background, blocks of modules above, waits on top.
  const std::uint8_t depths = data.depth_count(compute);
  if (depths > 0) {
    if (few(compute, 0, room)) {
      for (const store::Span& one : data.spans(compute, 0, scale_.range.begin_ns, scale_.range.end_ns)) {
        const float x0 = std::max(room.x, scale_.x_of(one.begin_ns));
        const float x1 = std::min(room.right(), scale_.x_of(store::time_of(data, rank, one).until_ns));
        const Rgb color = ctx_.colors().of(meaning_of(one.kind, one.code));
        ctx_.canvas.fill({x0, room.y, std::max(1.0F, x1 - x0 - 1), room.h},
                         mix(ctx_.colors().panel, color, 0.30F));
      }
    }
    density(compute, static_cast<std::uint8_t>(std::min(depths - 1, std::max(3, depths / 2))), room, 1);
  }
  strip_ = true;
  waits(rank, room);
  strip_ = false;
  const store::LaneId gathers{rank, ev::StreamId::gather};
  const store::LaneId reduces{rank, ev::StreamId::reduce};
  for (std::uint8_t d = 0; d < data.depth_count(gathers); ++d) density(gathers, d, gather, 3);
  for (std::uint8_t d = 0; d < data.depth_count(reduces); ++d) density(reduces, d, reduce, 3);
}

void SpanPainter::heat(std::span<const std::uint32_t> ranks, const Rect& rect) {
  constexpr float kWide = 4;  // of a column: rows are many and equally low
  const auto count = static_cast<std::size_t>(std::max(1.0F, std::ceil(rect.w / kWide)));
  const HeatRow& row = ctx_.app.run->heat().of(ctx_.app.store(), ranks, scale_.range, count);
  const Palette& c = ctx_.colors();
  const Rgb wait = mix(c.panel, c.of(Meaning::trouble), 0.6F);  // about as dark as hatched waits
  const auto color_of = [&](const HeatColumn& column) {
    const Rgb base = c.of(meaning_on(ev::StreamId::compute, column.most, column.code));
    return mix(mix(c.panel, base, column.busy), wait, std::min(1.0F, column.waited));
  };
  // A row of an earlier frame may have other columns.
  const double each = static_cast<double>(row.range.length()) /
                      static_cast<double>(std::max<std::size_t>(row.columns.size(), 1));
  const auto x_of = [&](std::size_t column) {
    const auto at = row.range.begin_ns + static_cast<std::int64_t>(each * static_cast<double>(column));
    return std::clamp(scale_.x_of(at), rect.x, rect.right());
  };
  const std::span columns = row.columns;
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t next = i + 1;
    while (next < columns.size() && std::fabs(columns[next].busy - columns[i].busy) < 0.03F &&
           std::fabs(columns[next].waited - columns[i].waited) < 0.03F &&
           columns[next].most == columns[i].most)
      ++next;
    if (columns[i].busy + columns[i].waited > 0) {
      const float x = x_of(i);
      ctx_.canvas.fill({x, rect.y, x_of(next) - x, rect.h}, color_of(columns[i]));
    }
    i = next;
  }
}

Rect SpanPainter::beside_flushes(const TimelineRow& row, const Rect& place) const {
  if (row.kind != RowKind::reduce || row.depth != 0 || ctx_.app.timeline.view.hides(ItemClass::marks))
    return place;
  const std::span<const BucketFlush> flushes = ctx_.app.run->index().flushes(row.rank);
  const std::int64_t until_ns = scale_.time_of(place.right() + kFlushMarkHalf);
  auto next =
      std::ranges::lower_bound(flushes, scale_.time_of(place.x - kFlushMarkHalf), {}, &BucketFlush::at_ns);
  Rect widest{place.x, place.y, 0, place.h};
  float from = place.x;
  const auto end_at = [&](float to) {
    if (to - from > widest.w) widest = {from, place.y, to - from, place.h};
  };
  for (; next != flushes.end() && next->at_ns <= until_ns && from < place.right(); ++next) {
    const float x = scale_.x_of(next->at_ns);
    end_at(std::min(x - kFlushMarkHalf, place.right()));
    from = std::max(from, x + kFlushMarkHalf);
  }
  end_at(place.right());
  return widest;
}

std::string SpanPainter::label(const TimelineRow& row, const store::Span& one, float width) const {
  const store::Store& data = ctx_.app.store();
  const auto fitting = [&](std::string_view path) {
    return std::string(ctx_.canvas.fitting_path(width, path, Font::small));
  };
  if (one.kind == ev::EventKind::collective_begin && row.kind == RowKind::gather) {
    const Fetch* fetch = ctx_.app.run->index().fetch_of(row.rank, one);
    const std::string contents = fetch == nullptr ? "" : store::contents_text(data, fetch->params);
    if (!contents.empty()) return fitting(contents);
  }
  if (one.kind == ev::EventKind::collective_begin && row.kind == RowKind::reduce) {
    const auto parts =
        ctx_.app.run->index().parts(row.rank, ev::as<ev::EventKind::collective_begin>(one).sequence);
    if (parts.size() == 1) return fitting(short_param(data, parts.front()));
    // One of several names would be misleading: show their number, or, if that does not fit, the bucket's
    // number as in the tooltip.
    if (const std::string all = std::to_string(parts.size()) + " gradients";
        parts.size() > 1 && ctx_.canvas.width(all, Font::small) <= width)
      return all;
  }
  if (store::is_wait(one.kind)) {
    return "! " + length_text(store::time_of(data, row.rank, one));
  }
  const std::string full = short_label(data, row.rank, one);
  const bool numbered = !full.empty() && full.back() >= '0' && full.back() <= '9';
  if (numbered && one.kind != ev::EventKind::module_begin && ctx_.canvas.width(full, Font::small) > width) {
    // The row shows the kind; only the number distinguishes spans.
    const std::size_t space = full.find_last_of(' ');
    if (space != std::string::npos) return full.substr(space + 1);
  }
  return one.kind == ev::EventKind::module_begin ? fitting(full) : full;
}

}  // namespace shardscope::gui
