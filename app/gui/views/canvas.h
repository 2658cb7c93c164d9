// Drawing in logical pixels with the theme's colours and three text sizes. A thin layer over ImDrawList
// without widgets or state.
#pragma once

#include <imgui.h>

#include <array>
#include <string_view>

#include "app/gui/model/geometry.h"
#include "app/gui/model/palette.h"

namespace shardscope::gui {

enum class Font : std::uint8_t { small, body, strong, title, mono, mono_small, mono_title };
inline constexpr int kFontCount = 7;

/// Height of a line in logical pixels.
[[nodiscard]] float line_height(Font font) noexcept;

struct Fonts {
  std::array<ImFont*, kFontCount> at{};
  [[nodiscard]] ImFont* of(Font font) const noexcept { return at[static_cast<std::size_t>(font)]; }
};

/// Opacity of the plate behind a text.
inline constexpr float kPlateAlpha = 0.88F;

enum class Align : std::uint8_t { left, centre, right };

class Canvas {
 public:
  /// `colors`: the theme's, or with the user's in place of some; they outlive the canvas.
  Canvas(ImDrawList* list, const Fonts& fonts, ThemeKind theme, const Palette& colors)
      : list_(list), fonts_(&fonts), theme_(theme), colors_(&colors) {}
  Canvas(ImDrawList* list, const Fonts& fonts, ThemeKind theme)
      : Canvas(list, fonts, theme, palette(theme)) {}

  [[nodiscard]] const Palette& colors() const noexcept { return *colors_; }
  [[nodiscard]] ThemeKind theme() const noexcept { return theme_; }
  [[nodiscard]] const Fonts& fonts() const noexcept { return *fonts_; }
  [[nodiscard]] ImDrawList* list() const noexcept { return list_; }
  /// Redirects the following drawing.
  void draw_on(ImDrawList* list) noexcept { list_ = list; }

  void fill(const Rect& rect, Rgb color, float alpha = 1, float rounding = 0);
  void outline(const Rect& rect, Rgb color, float alpha = 1, float thickness = 1, float rounding = 0);
  void horizontal(float x, float y, float width, Rgb color, float alpha = 1);
  void vertical(float x, float y, float height, Rgb color, float alpha = 1, float thickness = 1);
  void dashed(float x, float y, float width, Rgb color, float dash = 6, float gap = 4);
  void line(float x0, float y0, float x1, float y1, Rgb color, float alpha = 1, float thickness = 1);
  void polyline(const ImVec2* points, int count, Rgb color, float thickness = 1.5F);
  void triangle(float x0, float y0, float x1, float y1, float x2, float y2, Rgb color, float alpha = 1);
  void disc(float x, float y, float radius, Rgb color, float alpha = 1);
  /// Diagonal lines, shifted by `phase` pixels.
  void hatch(const Rect& rect, Rgb color, float alpha = 1, float spacing = 6, float phase = 0);
  /// Sparse dots, for padding.
  void dots(const Rect& rect, Rgb color, float alpha = 1);

  [[nodiscard]] float width(std::string_view text, Font font) const;
  /// Whether the text or at least three letters of it fit into `room`: one or two are not a name.
  [[nodiscard]] bool readable_in(float room, std::string_view text, Font font) const;
  /// A dotted path without leading components until it fits (shorter_path()); the remaining component may
  /// still be too long.
  [[nodiscard]] std::string_view fitting_path(float room, std::string_view path, Font font) const;
  void text(float x, float y, std::string_view text, Rgb color, Font font = Font::body);
  /// One line, vertically centred in `rect`, truncated with an ellipsis. True when truncated.
  bool text_in(const Rect& rect, std::string_view text, Rgb color, Font font = Font::body,
               Align align = Align::left);
  /// text_in() on a plate of colour `ground` as wide as the text: keeps it readable over hatches and
  /// arbitrary colours.
  bool text_on_plate(const Rect& rect, std::string_view text, Rgb color, Rgb ground, Font font);
  /// Breaks at spaces; draws only lines that fit. Returns the height used.
  float paragraph(const Rect& rect, std::string_view text, Rgb color, Font font = Font::body,
                  Align align = Align::left);
  /// The height that paragraph() uses at `width`.
  [[nodiscard]] float paragraph_height(float width, std::string_view text, Font font = Font::body) const;

  void push_clip(const Rect& rect);
  void pop_clip();

 private:
  template <typename Line>
  float each_line(float width, std::string_view text, Font font, const Line& line) const;
  ImDrawList* list_;
  const Fonts* fonts_;
  ThemeKind theme_;
  const Palette* colors_;
};

/// Applies a clip rectangle for a scope.
class Clip {
 public:
  Clip(Canvas& canvas, const Rect& rect) : canvas_(canvas) { canvas_.push_clip(rect); }
  ~Clip() { canvas_.pop_clip(); }
  Clip(const Clip&) = delete;
  Clip& operator=(const Clip&) = delete;

 private:
  Canvas& canvas_;
};

}  // namespace shardscope::gui
