// The rows of one run in the picture of two aligned steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "app/gui/model/aligned_lanes.h"
#include "app/gui/model/aligned_phases.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// What the rows of both runs have in common.
struct AlignedPicture {
  std::span<const AlignedLane> lanes;
  std::span<const std::size_t> shown;    ///< indexes of the lanes that are drawn
  std::span<const AlignedPart> parts;    ///< of the whole step
  std::span<const AlignedPart> visible;  ///< what the scale shows of them
  TimeScale scale;
  float row_height = 0;
};

/// A span under the pointer.
struct AlignedHit {
  std::size_t run = 0;  ///< 0: A, 1: B
  store::LaneId lane;
  store::Span span;
};

class AlignedRows {
 public:
  static constexpr float kGutter = 136;    ///< width of the row labels ("all-gather copy-in"), in pixels
  static constexpr float kLowestRow = 13;  ///< with less height inner depths are left out

  AlignedRows(Context& ctx, const AlignedPicture& picture, std::size_t run, std::uint32_t rank);
  /// Draws the rows in `room`; returns the span under the pointer.
  std::optional<AlignedHit> draw(Rect room);

 private:
  void label(const AlignedLane& lane, const Rect& whole, const Rect& row);
  void boxes(const AlignedLane& lane, const Rect& row);
  void box_name(const store::Span& span, const Rect& box, Rgb color);
  /// Draws the busy share of a lane in the visible parts.
  void density(const AlignedLane& lane, const Rect& row);
  void ends(const Rect& all);
  [[nodiscard]] const TimeRange& range_of(const AlignedPart& piece) const {
    return run_ == 0 ? piece.a : piece.b;
  }
  /// Pixels of the run's own time in these parts, without gaps where the other run is longer.
  [[nodiscard]] float width_of(std::span<const AlignedPart> parts) const;

  Context& ctx_;
  const AlignedPicture& picture_;
  std::size_t run_;
  std::uint32_t rank_;
  const store::Store& store_;
  std::optional<AlignedHit> hit_;
};

}  // namespace shardscope::gui
