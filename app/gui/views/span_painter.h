// Draws one lane row of the timeline: spans where they are wide enough, else their busy share.
#pragma once

#include <optional>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Fill colour of a span: modules that contain others are less prominent, so that the innermost stand
/// out.
[[nodiscard]] Rgb span_color(const Palette& colors, ev::StreamId lane, const store::Span& span);

class SpanPainter {
 public:
  SpanPainter(Context& ctx, const TimeScale& scale) : ctx_(ctx), scale_(scale) {}
  /// Draws a row at `rect`. Returns the span under the pointer, if any.
  std::optional<store::Span> lane(const TimelineRow& row, const Rect& rect);
  /// Whether the pointer is on the busy share of many spans, of which lane() returned one.
  [[nodiscard]] bool folded() const noexcept { return folded_; }
  /// One line for a whole rank: computation and its waits, with gathers and reductions below.
  void rank_strip(std::uint32_t rank, const Rect& rect);
  /// Activity of these ranks as colour: stronger with the mean share of a column that they computed or
  /// waited.
  void heat(std::span<const std::uint32_t> ranks, const Rect& rect);

 private:
  /// The visible spans are few enough to draw one by one, and in memory.
  [[nodiscard]] bool few(store::LaneId lane, std::uint8_t depth, const Rect& rect) const;
  void spans(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list);
  void span(const TimelineRow& row, const Rect& rect, const store::Span& span, float x0, float x1);
  void gather_marks(const TimelineRow& row, const Rect& rect, const store::Span& span, float x0, float x1);
  void density(store::LaneId lane, std::uint8_t depth, const Rect& rect, float least);
  /// Writes why a GPU stream was idle, where there is room.
  void gpu_gaps(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list);
  void waits(std::uint32_t rank, const Rect& rect);
  void open_waits(const TimelineRow& row, const Rect& rect);
  /// The widest part of a label's place that no mark of a flush covers.
  [[nodiscard]] Rect beside_flushes(const TimelineRow& row, const Rect& place) const;
  [[nodiscard]] std::string label(const TimelineRow& row, const store::Span& span, float width) const;

  Context& ctx_;
  TimeScale scale_;
  std::vector<store::Density> columns_;
  bool folded_ = false;
  bool strip_ = false;  ///< drawing a collapsed rank: no labels, waits cover the spans below
};

}  // namespace shardscope::gui
