// Where the spans of a row are drawn, one after the other: each at its own place, and none over a pixel that
// has a colour already.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace shardscope::gui {

/// Whether so many spans on `width` pixels are drawn one by one; else the row shows its busy share.
[[nodiscard]] inline bool few_spans(std::size_t spans, float width) noexcept {
  constexpr float kPerPixel = 0.4F;
  return static_cast<float>(spans) <= width * kPerPixel;
}

/// Of one row from `left` to `right`, in pixels. Spans are to come in the order of their begins.
class SpanPlaces {
 public:
  struct Place {
    float x0 = 0, x1 = 0;
  };
  SpanPlaces(float left, float right) noexcept : left_(left), right_(right), painted_to_(left - 1) {}

  /// The next span reaches from `begin` to `end`. It is drawn one pixel wide at the least, from its own begin
  /// on: one that is shorter moves none that come after it. Nothing: it lies within a pixel that has its
  /// colour already, or outside the row.
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
