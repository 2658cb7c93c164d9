// Conversion of window positions to pixels of a picture.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/gui/model/geometry.h"

namespace shardscope::gui {

struct PixelRect {
  int x = 0, y = 0, w = 0, h = 0;  ///< from the top left corner
  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

/// Pixels of a rectangle in points, clipped to a window of `width` by `height` pixels; empty if outside.
/// `left`, `top`: of the window, in the same points, possibly desktop coordinates.
[[nodiscard]] inline PixelRect pixels_of(const Rect& place, float left, float top, float scale, int width,
                                         int height) {
  const auto pixel = [&](float points, int most) {
    return std::clamp(static_cast<int>(std::lround(points * scale)), 0, most);
  };
  PixelRect out;
  out.x = pixel(place.x - left, width);
  out.y = pixel(place.y - top, height);
  out.w = pixel(place.right() - left, width) - out.x;
  out.h = pixel(place.bottom() - top, height) - out.y;
  return out;
}

/// Flips rows from OpenGL's order (bottom first). `rgba`: w * h * 4 bytes. Sets alpha to 255.
[[nodiscard]] inline std::vector<std::uint8_t> top_first(const std::vector<std::uint8_t>& rgba, int w,
                                                         int h) {
  std::vector<std::uint8_t> out(rgba.size());
  const auto row = static_cast<std::size_t>(w) * 4;
  for (int y = 0; y < h; ++y)
    std::copy_n(rgba.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(h - 1 - y)), row,
                out.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(y)));
  for (std::size_t i = 3; i < out.size(); i += 4) out[i] = 255;
  return out;
}

}  // namespace shardscope::gui
