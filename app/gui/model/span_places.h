// Pixel ranges of the spans of a row: each at its own position, and none over a pixel that is already
// drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace shardscope::gui {

/// Whether this many spans on `width` pixels are drawn one by one; else the row shows its busy share.
[[nodiscard]] inline bool few_spans(std::size_t spans, float width) noexcept {
  constexpr float kPerPixel = 0.4F;
  return static_cast<float>(spans) <= width * kPerPixel;
}

/// For one row from `left` to `right`, in pixels. Spans must come in order of begin.
class SpanPlaces {
 public:
  struct Place {
    float x0 = 0, x1 = 0;
  };
  SpanPlaces(float left, float right) noexcept : left_(left), right_(right), painted_to_(left - 1) {}

  /// Pixels of the next span, [`begin`, `end`]. At least one pixel wide from its own begin: a
  /// short span does not shift later ones. nullopt: within pixels already drawn, or outside the
  /// row.
  [[nodiscard]] std::optional<Place> next(float begin, float end) noexcept {
    const float x0 = std::max(left_, begin);
    const float x1 = std::min(right_, std::max(end, x0 + 1));
    if (x1 <= painted_to_ || x1 <= x0) return std::nullopt;
    const Place place{std::max(x0, painted_to_), x1};
    painted_to_ = std::floor(x1);
    return place;
  }

 private:
  float left_, right_;
  float painted_to_;
};

}  // namespace shardscope::gui
