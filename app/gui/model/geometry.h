// Rectangles in logical pixels (one logical pixel is `scale` device pixels). No ImGui here.
#pragma once

#include <algorithm>

namespace shardscope::gui {

struct Rect {
  float x = 0, y = 0, w = 0, h = 0;
  [[nodiscard]] constexpr bool operator==(const Rect&) const noexcept = default;
  [[nodiscard]] constexpr float right() const noexcept { return x + w; }
  [[nodiscard]] constexpr float bottom() const noexcept { return y + h; }
  [[nodiscard]] constexpr bool contains(float px, float py) const noexcept {
    return px >= x && px < right() && py >= y && py < bottom();
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return w <= 0 || h <= 0; }
  [[nodiscard]] constexpr Rect inset(float dx, float dy) const noexcept {
    return {x + dx, y + dy, std::max(0.0F, w - 2 * dx), std::max(0.0F, h - 2 * dy)};
  }
  /// Cuts `amount` off one side and returns that piece; *this keeps the rest.
  Rect take_top(float amount) noexcept {
    amount = std::clamp(amount, 0.0F, h);
    const Rect piece{x, y, w, amount};
    y += amount;
    h -= amount;
    return piece;
  }
  Rect take_bottom(float amount) noexcept {
    amount = std::clamp(amount, 0.0F, h);
    h -= amount;
    return {x, y + h, w, amount};
  }
  Rect take_left(float amount) noexcept {
    amount = std::clamp(amount, 0.0F, w);
    const Rect piece{x, y, amount, h};
    x += amount;
    w -= amount;
    return piece;
  }
  Rect take_right(float amount) noexcept {
    amount = std::clamp(amount, 0.0F, w);
    w -= amount;
    return {x + w, y, amount, h};
  }
};

}  // namespace shardscope::gui
