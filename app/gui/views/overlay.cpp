// Menus and the list to pick from: what lies above the panels.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "app/gui/views/context.h"

namespace shardscope::gui {
namespace {

constexpr float kOverlayRow = 24;
constexpr int kMostRows = 14;

bool contains_ignoring_case(const std::string& text, const std::string& part) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

void type_into(const Context& ctx, std::string& text) {
  const ImGuiIO& io = ImGui::GetIO();
  for (const ImWchar c : io.InputQueueCharacters) {
    if (c >= 32 && c < 127 && text.size() < 80) text.push_back(static_cast<char>(c));
  }
  if (ctx.pressed(key::kBackspace) && !text.empty()) text.pop_back();
}

}  // namespace

void Context::draw_overlay() {
  Overlay& overlay = ui.overlay;
  if (!overlay.open) return;
  const Palette& c = colors();
  if (overlay.filter && !overlay.just_opened) type_into(*this, overlay.text);

  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < overlay.items.size(); ++i) {
    if (!overlay.filter || contains_ignoring_case(overlay.items[i].label, overlay.text)) shown.push_back(i);
  }
  float w = overlay.filter ? 320.0F : 140.0F;
  for (const OverlayItem& item : overlay.items) {
    w = std::max(w, canvas.width(item.label, Font::body) +
                        (item.hint.empty() ? 0 : canvas.width(item.hint, Font::small) + 32) + 44);
    if (w > 480) break;
  }
  w = std::min(w, std::min(480.0F, window.w - 16));
  const int rows = std::clamp(static_cast<int>(shown.size()), 1, kMostRows);
  const float head = overlay.filter ? 60.0F : 0.0F;
  Rect box{overlay.anchor.x, overlay.anchor.bottom() + 4, w,
           head + static_cast<float>(rows) * kOverlayRow + 8};
  if (box.right() > window.right() - 8) box.x = window.right() - 8 - box.w;
  if (box.bottom() > window.bottom() - 8) box.y = std::max(window.y + 8, overlay.anchor.y - 4 - box.h);
  canvas.fill({box.x + 2, box.y + 4, box.w, box.h}, 0x000000, 0.4F, 4);
  canvas.fill(box, c.raised, 1, 4);
  canvas.outline(box, mix(c.line, c.muted, 0.4F), 1, 1, 4);

  Rect room = box.inset(0, 4);
  if (overlay.filter) {
    const Rect title = room.take_top(24);
    canvas.text_in(title.inset(12, 0), overlay.title, c.muted, Font::small);
    const Rect field = room.take_top(28).inset(8, 0);
    canvas.fill(field, c.base, 1, 3);
    canvas.outline(field, c.accent, 1, 1, 3);
    const Rect inside = field.inset(8, 0);
    if (overlay.text.empty())
      canvas.text_in(inside, "type to narrow", c.muted);
    else
      canvas.text_in(inside, overlay.text, c.text, Font::mono);
    room.take_top(4);
  }
  const int count = static_cast<int>(shown.size());
  if (pressed(key::kDown)) overlay.cursor = std::min(count - 1, overlay.cursor + 1);
  if (pressed(key::kUp)) overlay.cursor = std::max(0, overlay.cursor - 1);
  overlay.cursor = std::min(overlay.cursor, count - 1);
  if (overlay.filter && overlay.cursor < 0 && count > 0) overlay.cursor = 0;
  const float most = std::max(0.0F, static_cast<float>(count) * kOverlayRow - room.h);
  overlay.scroll = std::clamp(overlay.scroll - pointer.wheel * kOverlayRow * 2, 0.0F, most);
  const bool inside = box.contains(pointer.x, pointer.y);
  int picked = -1;
  {
    const Clip clip(canvas, room);
    for (int i = 0; i < count; ++i) {
      const OverlayItem& item = overlay.items[shown[static_cast<std::size_t>(i)]];
      const Rect row{room.x, room.y + static_cast<float>(i) * kOverlayRow - overlay.scroll, room.w,
                     kOverlayRow};
      if (row.bottom() < room.y || row.y > room.bottom()) continue;
      const bool over = inside && row.contains(pointer.x, pointer.y);
      if (over && (pointer.dx != 0 || pointer.dy != 0)) overlay.cursor = i;
      if (i == overlay.cursor && item.enabled) canvas.fill(row, mix(c.raised, c.accent, 0.3F));
      Rect text = row.inset(12, 0);
      if (!item.hint.empty()) {
        canvas.text_in(text.take_right(canvas.width(item.hint, Font::small) + 1), item.hint, c.muted,
                       Font::small);
        text.take_right(12);
      }
      if (!overlay.filter) {
        const Rect mark = text.take_left(16);
        if (item.checked) canvas.disc(mark.x + 4, mark.y + kOverlayRow / 2, 3, c.accent);
      }
      canvas.text_in(text, item.label, item.enabled ? c.text : c.muted);
      if (over && pointer.pressed[0] && item.enabled && !overlay.just_opened) picked = i;
    }
    if (count == 0) canvas.text_in(room.inset(12, 0), "nothing matches", c.muted);
  }
  const bool entered = pressed(key::kEnter) || pressed(key::kKeypadEnter);
  if (!overlay.just_opened && entered && overlay.cursor >= 0) picked = overlay.cursor;
  const bool leave = pressed(key::kEscape) ||
                     (!inside && !overlay.just_opened && (pointer.pressed[0] || pointer.pressed[1]));
  overlay.just_opened = false;
  if (picked >= 0) {
    const OverlayItem chosen = overlay.items[shown[static_cast<std::size_t>(picked)]];
    if (!chosen.enabled) return;
    overlay = {};
    if (chosen.act) chosen.act();
  } else if (leave) {
    overlay = {};
  }
}

}  // namespace shardscope::gui
