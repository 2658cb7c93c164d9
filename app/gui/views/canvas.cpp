#include "app/gui/views/canvas.h"

#include <cfloat>
#include <cmath>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

ImU32 pack(Rgb color, float alpha) {
  const auto a = static_cast<ImU32>(std::lround(std::clamp(alpha, 0.0F, 1.0F) * 255.0F));
  return IM_COL32(color >> 16 & 255U, color >> 8 & 255U, color & 255U, a);
}

constexpr std::string_view kEllipsis = "\u2026";

}  // namespace

float line_height(Font font) noexcept {
  switch (font) {
    case Font::small:
    case Font::mono_small:
      return 14;
    case Font::body:
    case Font::strong:
    case Font::mono:
      return 16;
    case Font::title:
    case Font::mono_title:
      return 26;
  }
  return 16;
}

void Canvas::fill(const Rect& rect, Rgb color, float alpha, float rounding) {
  if (rect.empty()) return;
  list_->AddRectFilled({rect.x, rect.y}, {rect.right(), rect.bottom()}, pack(color, alpha), rounding);
}

void Canvas::outline(const Rect& rect, Rgb color, float alpha, float thickness, float rounding) {
  if (rect.empty()) return;
  if (rounding > 0) {
    list_->AddRect({rect.x, rect.y}, {rect.right(), rect.bottom()}, pack(color, alpha), rounding, 0,
                   thickness);
    return;
  }
  // Four fills rather than AddRect: its half-pixel corners look soft at one pixel.
  const float t = std::min({thickness, rect.w, rect.h});
  fill({rect.x, rect.y, rect.w, t}, color, alpha);
  fill({rect.x, rect.bottom() - t, rect.w, t}, color, alpha);
  fill({rect.x, rect.y + t, t, rect.h - 2 * t}, color, alpha);
  fill({rect.right() - t, rect.y + t, t, rect.h - 2 * t}, color, alpha);
}

void Canvas::horizontal(float x, float y, float width, Rgb color, float alpha) {
  fill({x, std::floor(y), width, 1}, color, alpha);
}

void Canvas::vertical(float x, float y, float height, Rgb color, float alpha, float thickness) {
  fill({std::floor(x), y, thickness, height}, color, alpha);
}

void Canvas::dashed(float x, float y, float width, Rgb color, float dash, float gap) {
  for (float at = x; at < x + width; at += dash + gap) {
    fill({at, std::floor(y), std::min(dash, x + width - at), 1}, color);
  }
}

void Canvas::line(float x0, float y0, float x1, float y1, Rgb color, float alpha, float thickness) {
  list_->AddLine({x0, y0}, {x1, y1}, pack(color, alpha), thickness);
}

void Canvas::polyline(const ImVec2* points, int count, Rgb color, float thickness) {
  // Separate segments: a joined polyline has spikes and holes at sharp turns.
  for (int i = 1; i < count; ++i) list_->AddLine(points[i - 1], points[i], pack(color, 1), thickness);
}

void Canvas::triangle(float x0, float y0, float x1, float y1, float x2, float y2, Rgb color, float alpha) {
  list_->AddTriangleFilled({x0, y0}, {x1, y1}, {x2, y2}, pack(color, alpha));
}

void Canvas::disc(float x, float y, float radius, Rgb color, float alpha) {
  list_->AddCircleFilled({x, y}, radius, pack(color, alpha));
}

void Canvas::hatch(const Rect& rect, Rgb color, float alpha, float spacing, float phase) {
  if (rect.w < 3 || rect.h < 3) return;
  const ImU32 packed = pack(color, alpha);
  // Lines x + y = k on a grid shared by all rectangles, so that the hatches of neighbours join.
  const float low = rect.x + rect.y;
  const float high = rect.right() + rect.bottom();
  float k = std::ceil((low - phase) / spacing) * spacing + phase;
  for (; k < high; k += spacing) {
    const float x0 = std::max(rect.x, k - rect.bottom());
    const float x1 = std::min(rect.right(), k - rect.y);
    if (x1 - x0 > 0.5F) list_->AddLine({x0, k - x0}, {x1, k - x1}, packed, 1.2F);
  }
}

void Canvas::dots(const Rect& rect, Rgb color, float alpha) {
  constexpr float kStep = 5;
  constexpr float kDot = 1.5F;
  for (float y = rect.y + 2; y + kDot <= rect.bottom(); y += kStep) {
    for (float x = rect.x + 2; x + kDot <= rect.right(); x += kStep) fill({x, y, kDot, kDot}, color, alpha);
  }
}

float Canvas::width(std::string_view text, Font font) const {
  return fonts_->of(font)
      ->CalcTextSizeA(line_height(font), FLT_MAX, 0, text.data(), text.data() + text.size())
      .x;
}

void Canvas::text(float x, float y, std::string_view text, Rgb color, Font font) {
  list_->AddText(fonts_->of(font), line_height(font), {x, y}, pack(color, 1), text.data(),
                 text.data() + text.size());
}

bool Canvas::readable_in(float room, std::string_view what, Font font) const {
  constexpr float kLeast = 36;  // width of three letters and the ellipsis
  return room >= kLeast || width(what, font) <= room + 0.5F;
}

std::string_view Canvas::fitting_path(float room, std::string_view path, Font font) const {
  while (width(path, font) > room + 0.5F) {
    const std::string_view shorter = shorter_path(path);
    if (shorter.size() == path.size()) break;
    path = shorter;
  }
  return path;
}

bool Canvas::text_in(const Rect& rect, std::string_view what, Rgb color, Font font, Align align) {
  if (rect.w < 4 || what.empty()) return !what.empty();
  const float y = rect.y + std::floor((rect.h - line_height(font)) / 2);
  float w = width(what, font);
  if (w <= rect.w + 0.5F) {
    const float x = align == Align::left    ? rect.x
                    : align == Align::right ? rect.right() - w
                                            : rect.x + (rect.w - w) / 2;
    text(std::floor(x), y, what, color, font);
    return false;
  }
  const float room = rect.w - width(kEllipsis, font);
  if (room <= 0) return true;
  const char* cut = what.data();
  w = fonts_->of(font)
          ->CalcTextSizeA(line_height(font), room, 0, what.data(), what.data() + what.size(), &cut)
          .x;
  if (cut == what.data()) return true;
  text(rect.x, y, {what.data(), static_cast<std::size_t>(cut - what.data())}, color, font);
  text(rect.x + w, y, kEllipsis, color, font);
  return true;
}

bool Canvas::text_on_plate(const Rect& rect, std::string_view what, Rgb color, Rgb ground, Font font) {
  const float all = width(what, font);
  if (all > rect.w && rect.w < 2 * width(kEllipsis, font)) return true;  // the plate would be empty
  const float height = line_height(font);
  fill({rect.x - 2, rect.y + std::floor((rect.h - height) / 2), std::min(rect.w, all) + 4, height}, ground,
       kPlateAlpha, 2);
  return text_in(rect, what, color, font);
}

template <typename Line>
float Canvas::each_line(float room, std::string_view what, Font font, const Line& line) const {
  const float height = line_height(font) + 2;
  float y = 0;
  while (!what.empty()) {
    const std::size_t newline = what.find('\n');
    std::string_view piece = what.substr(0, newline);
    std::size_t taken = piece.size() + (newline == std::string_view::npos ? 0 : 1);
    if (width(piece, font) > room) {
      const char* cut = fonts_->of(font)->CalcWordWrapPosition(line_height(font), piece.data(),
                                                               piece.data() + piece.size(), room);
      taken = std::max<std::size_t>(1, static_cast<std::size_t>(cut - piece.data()));
      piece = piece.substr(0, taken);
      while (taken < what.size() && what[taken] == ' ') ++taken;
    }
    if (!line(y, piece)) break;
    y += height;
    what.remove_prefix(taken);
  }
  return y;
}

float Canvas::paragraph(const Rect& rect, std::string_view what, Rgb color, Font font, Align align) {
  return each_line(rect.w, what, font, [&](float y, std::string_view piece) {
    if (y + line_height(font) > rect.h) return false;
    const float spare = rect.w - width(piece, font);
    const float x = align == Align::left ? 0 : align == Align::right ? spare : spare / 2;
    text(std::floor(rect.x + x), rect.y + y, piece, color, font);
    return true;
  });
}

float Canvas::paragraph_height(float room, std::string_view what, Font font) const {
  return each_line(room, what, font, [](float, std::string_view) { return true; });
}

void Canvas::push_clip(const Rect& rect) {
  list_->PushClipRect({rect.x, rect.y}, {rect.right(), rect.bottom()}, true);
}
void Canvas::pop_clip() { list_->PopClipRect(); }

}  // namespace shardscope::gui
