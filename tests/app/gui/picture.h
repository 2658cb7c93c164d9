// A panel as pixels, made without a display.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "app/gui/platform/offscreen.h"

namespace shardscope::gui {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
  [[nodiscard]] Rgb at(float x, float y) const {
    const std::size_t i =
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 4;
    return static_cast<Rgb>(rgba[i]) << 16 | static_cast<Rgb>(rgba[i + 1]) << 8 | rgba[i + 2];
  }
  /// Pixels of exactly this colour.
  [[nodiscard]] std::size_t count(Rgb color) const {
    std::size_t found = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x)
        found += at(static_cast<float>(x), static_cast<float>(y)) == color ? 1 : 0;
    }
    return found;
  }
  [[nodiscard]] std::size_t colours() const {
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
      seen.insert(static_cast<std::uint32_t>(rgba[i]) << 16 | static_cast<std::uint32_t>(rgba[i + 1]) << 8 |
                  rgba[i + 2]);
    }
    return seen.size();
  }
  /// Share of pixels of another colour; `from_row`: only below it counts.
  [[nodiscard]] double drawn(Rgb ground, int from_row = 0) const {
    std::size_t other = 0;
    for (std::size_t i = static_cast<std::size_t>(from_row) * static_cast<std::size_t>(width) * 4;
         i + 3 < rgba.size(); i += 4) {
      const Rgb color = static_cast<Rgb>(rgba[i]) << 16 | static_cast<Rgb>(rgba[i + 1]) << 8 | rgba[i + 2];
      other += color != ground ? 1 : 0;
    }
    return static_cast<double>(other) / (static_cast<double>(rgba.size()) / 4);
  }
};

/// Red, green or blue of a colour, by its shift: 16, 8, 0.
inline int channel(Rgb color, int shift) { return static_cast<int>(color >> shift & 255U); }
/// Equal but for what is rounded where colours are blended.
inline bool near(Rgb a, Rgb b) {
  return std::abs(channel(a, 16) - channel(b, 16)) <= 2 && std::abs(channel(a, 8) - channel(b, 8)) <= 2 &&
         std::abs(channel(a, 0) - channel(b, 0)) <= 2;
}

inline Picture render(AppState& app, const std::string& panel, int width, int height) {
  Frame frame;
  Offscreen offscreen(width, height);
  return {width, height, offscreen.render(frame, app, panel, 1)};
}

}  // namespace shardscope::gui
