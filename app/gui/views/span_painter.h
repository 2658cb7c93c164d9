// Draws one lane row of the timeline: spans when they are wide enough, busy share when they are not.
#pragma once

#include <optional>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// What a span of a lane is filled with: modules that hold others recede, so that the innermost are seen
/// first.
[[nodiscard]] Rgb span_color(const Palette& colors, ev::StreamId lane, const store::Span& span);

class SpanPainter {
 public:
  SpanPainter(Context& ctx, const TimeScale& scale) : ctx_(ctx), scale_(scale) {}
  /// `rect`: the row's place. Returns the span under the pointer, if any.
  std::optional<store::Span> lane(const TimelineRow& row, const Rect& rect);
  /// Whether what lies under the pointer is the busy share of many spans, of which lane() returned one.
  [[nodiscard]] bool folded() const noexcept { return folded_; }
  /// One line for a whole rank: what compute did, where it waited, gathers and reductions beneath.
  void rank_strip(std::uint32_t rank, const Rect& rect);
  /// What these ranks did, as colour alone: the more of a column they computed or waited (the mean of them),
  /// the stronger.
  void heat(std::span<const std::uint32_t> ranks, const Rect& rect);

 private:
  /// Few enough in view to be drawn one by one, and in memory.
  [[nodiscard]] bool few(store::LaneId lane, std::uint8_t depth, const Rect& rect) const;
  void spans(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list);
  void span(const TimelineRow& row, const Rect& rect, const store::Span& span, float x0, float x1);
  void gather_marks(const TimelineRow& row, const Rect& rect, const store::Span& span, float x0, float x1);
  void density(store::LaneId lane, std::uint8_t depth, const Rect& rect, float least);
  /// Why a stream of the GPU was idle, where there is room to say it.
  void gpu_gaps(const TimelineRow& row, const Rect& rect, std::span<const store::Span> list);
  void waits(std::uint32_t rank, const Rect& rect);
  void open_waits(const TimelineRow& row, const Rect& rect);
  [[nodiscard]] std::string label(const TimelineRow& row, const store::Span& span, float width) const;

  Context& ctx_;
  TimeScale scale_;
  std::vector<store::Density> columns_;
  bool folded_ = false;
  bool strip_ = false;  ///< drawing a collapsed rank: no labels, waits cover what is under them
};

}  // namespace shardscope::gui
