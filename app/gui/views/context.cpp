#include "app/gui/views/context.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardscope::gui {

bool Context::under_pointer(const Rect& rect) const {
  return over_window && !ui.overlay.open && rect.contains(pointer.x, pointer.y);
}

bool Context::hovered(const Rect& rect) const {
  if (!over_window || ui.overlay.open || ui.captured != nullptr) return false;
  return rect.contains(pointer.x, pointer.y);
}

void Context::enter_window() {
  items_.clear();
  canvas.draw_on(ImGui::GetWindowDrawList());
  // ImGui holds the window of a press outside of its items; our own drags may leave that window.
  over_window = ImGui::IsWindowHovered(ui.captured != nullptr ? ImGuiHoveredFlags_AllowWhenBlockedByActiveItem
                                                              : ImGuiHoveredFlags_None);
}

Context::Drag Context::drag(const void* owner, const Rect& rect, int button) {
  if (ui.captured == owner) {
    if (pointer.released[button] || !pointer.down[button]) {
      ui.captured = nullptr;
      return ui.drag_moved ? Drag::dropped : Drag::clicked;
    }
    if (std::fabs(pointer.x - ui.drag_from_x) + std::fabs(pointer.y - ui.drag_from_y) > 3)
      ui.drag_moved = true;
    return ui.drag_moved ? Drag::going : Drag::begun;
  }
  if (hovered(rect) && pointer.pressed[button]) {
    ui.captured = owner;
    ui.drag_moved = false;
    ui.drag_from_x = pointer.x;
    ui.drag_from_y = pointer.y;
    return Drag::begun;
  }
  return Drag::none;
}

bool Context::keyboard_item(const Rect& rect, std::string_view label, bool enabled) {
  ImGuiWindow* const drawn = ImGui::GetCurrentWindow();
  if (drawn->SkipItems) return false;
  ImGuiID id = drawn->GetID(label.data(), label.data() + label.size());
  // Distinct ids for several items with the same label.
  while (std::ranges::find(items_, id) != items_.end()) ++id;
  items_.push_back(id);
  const ImRect box({rect.x, rect.y}, {rect.right(), rect.bottom()});
  if (!ImGui::ItemAdd(box, id, nullptr, enabled ? ImGuiItemFlags_None : ImGuiItemFlags_Disabled))
    return false;
  ImGui::RenderNavCursor(box, id);
  return enabled && ImGui::GetCurrentContext()->NavActivateId == id;
}

float Context::menu_button_width(std::string_view label) const { return button_width(label) + 12; }

float Context::button_width(std::string_view label) const {
  return std::ceil(canvas.width(label, Font::body)) + 16;
}

bool Context::button(const Rect& rect, std::string_view label, bool enabled, Look look,
                     std::string_view tip_text) {
  const bool pressed = button_ground(rect, label, enabled, look, tip_text);
  const Palette& c = colors();
  const Rgb ink = !enabled ? c.muted : look == Look::primary ? text_on(c.accent) : c.text;
  canvas.text_in(rect.inset(6, 0), label, ink, Font::body, Align::centre);
  return pressed;
}

bool Context::button_ground(const Rect& rect, std::string_view label, bool enabled, Look look,
                            std::string_view tip_text) {
  const Palette& c = colors();
  const bool over = hovered(rect);
  const bool on = over && enabled;
  Rgb fill = c.raised;
  if (look == Look::primary && enabled)
    fill = c.accent;
  else if (look == Look::chosen)
    fill = mix(c.panel, c.accent, 0.28F);
  if (on) fill = mix(fill, c.text, 0.12F);
  canvas.fill(rect, fill, enabled || look == Look::chosen ? 1.0F : 0.55F, 3);
  if (over && !tip_text.empty()) tip(tip_text);
  const bool by_key = keyboard_item(rect, label, enabled);
  return by_key || (on && pointer.pressed[0]);
}

bool Context::listed(std::string_view label, bool enabled, std::string_view tip_text) {
  if (ui.toolbar_of.empty()) return false;
  if (ui.dialog == Dialog::palette)
    ui.toolbar.push_back({std::string(ui.toolbar_of), std::string(label), std::string(tip_text), enabled});
  if (!ui.pressed || ui.pressed->panel != ui.toolbar_of || ui.pressed->label != label) return false;
  ui.pressed.reset();
  return enabled;
}

bool Context::offered(std::string_view name, bool enabled, std::string_view tip_text) {
  const std::string_view before = std::exchange(ui.toolbar_of, ui.panel_of);
  const bool chosen = listed(name, enabled, tip_text);
  ui.toolbar_of = before;
  return chosen;
}

bool Context::button_right(Rect& room, std::string_view label, bool enabled, Look look,
                           std::string_view tip_text) {
  const Rect place = room.take_right(button_width(label));
  room.take_right(4);
  const bool chosen = listed(label, enabled, tip_text);
  return button(place, label, enabled, look, tip_text) || chosen;
}

bool Context::menu_button_right(Rect& room, std::string_view label, Rect& anchor, bool enabled,
                                std::string_view tip_text) {
  const Rect place = room.take_right(menu_button_width(label));
  room.take_right(4);
  anchor = place;
  const bool chosen = listed(label, enabled, tip_text);
  const bool hit = button_ground(place, label, enabled, Look::plain, tip_text) || chosen;
  canvas.text_in({place.x + 8, place.y, place.w - 20, place.h}, label,
                 enabled ? colors().text : colors().muted);
  const float x = place.right() - 11;
  const float y = place.y + place.h / 2;
  canvas.triangle(x - 3, y - 1, x + 3, y - 1, x, y + 3, colors().muted);
  return hit;
}

int Context::choice_right(Rect& room, const std::vector<std::string>& labels, int chosen) {
  int result = chosen;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const Rect place = room.take_right(button_width(labels[i]));
    if (i != 0) room.take_right(1);
    if (button(place, labels[i], true, static_cast<int>(i) == chosen ? Look::chosen : Look::plain))
      result = static_cast<int>(i);
  }
  room.take_right(8);
  return result;
}

void Context::scroll(const void* owner, const Rect& room, float content, float& offset) {
  const float most = std::max(0.0F, content - room.h);
  if (most > 0 && hovered(room)) offset -= pointer.wheel * 48;
  const Rect grip_area{room.right() - 8, room.y, 8, room.h};
  if (most > 0) {
    const Drag state = drag(owner, grip_area, 0);
    if (state == Drag::going) offset += pointer.dy * content / std::max(1.0F, room.h);
  }
  offset = std::clamp(offset, 0.0F, most);
  if (most <= 0) return;
  const float size = std::max(24.0F, room.h * room.h / content);
  const float at = room.y + (room.h - size) * offset / most;
  canvas.fill({room.right() - 5, at, 4, size}, colors().muted,
              hovered(grip_area) || ui.captured == owner ? 0.8F : 0.35F, 2);
}

void Context::quantity(const Rect& rect, std::string_view number, std::string_view unit, float unit_width,
                       Rgb color) {
  Rect room = rect;
  const Rect unit_rect = room.take_right(unit_width);
  canvas.text_in({unit_rect.x + 4, unit_rect.y, unit_rect.w - 4, unit_rect.h}, unit, colors().muted,
                 Font::small);
  canvas.text_in(room, number, color == 0xFFFFFFFF ? colors().text : color, Font::mono, Align::right);
}

void Context::section(Rect& room, std::string_view title) {
  room.take_top(8);
  const Rect line = room.take_top(20);
  canvas.text_in(line, title, colors().muted, Font::small);
  canvas.horizontal(line.x, line.bottom() - 1, line.w, colors().line);
  room.take_top(4);
}

Context::Row Context::row(const Rect& rect, std::string_view id) {
  const bool over = hovered(rect);
  if (over) canvas.fill(rect, colors().raised);
  const bool by_key = keyboard_item(rect, id, true);
  return {over, by_key || (over && pointer.pressed[0])};
}

void Context::menu(const Rect& anchor, std::vector<OverlayItem> items) {
  ui.overlay = {};
  ui.overlay.open = true;
  ui.overlay.just_opened = true;
  ui.overlay.anchor = anchor;
  ui.overlay.items = std::move(items);
}

void Context::picker(const Rect& anchor, std::string title, std::vector<OverlayItem> items) {
  menu(anchor, std::move(items));
  ui.overlay.filter = true;
  ui.overlay.title = std::move(title);
}

void Context::tip(std::string_view text) { tip_text_ = text; }
void Context::tip(const Details& details) { tip_ = details; }

void Context::draw_tip() {
  if (ui.overlay.open || ui.captured != nullptr) return;
  const Palette& c = colors();
  constexpr float kPad = 8;
  if (tip_.title.empty() && tip_text_.empty()) return;
  float w = 0;
  float h = kPad * 2;
  constexpr float kWidest = 420;
  if (tip_.title.empty()) {
    w = std::min(kWidest, canvas.width(tip_text_, Font::body) + 1);
    h += canvas.paragraph_height(w, tip_text_);
  } else {
    w = std::max(canvas.width(tip_.title, Font::strong), canvas.width(tip_.subtitle, Font::small));
    for (const Field& field : tip_.fields) {
      w = std::max(
          w, canvas.width(field.label, Font::small) + 24 + canvas.width(field.value, Font::mono_small) + 40);
    }
    w = std::clamp(w, 180.0F, kWidest);
    h += 18 + (tip_.subtitle.empty() ? 0 : 16) + 4 + 17 * static_cast<float>(tip_.fields.size());
    if (!tip_.reason.empty()) h += 4 + canvas.paragraph_height(w, tip_.reason, Font::small);
  }
  // Draw the tooltip in the viewport under the pointer, which may be a panel dragged out of the window.
  ImGuiViewport* under = ImGui::FindViewportByID(ImGui::GetIO().MouseHoveredViewport);
  if (under == nullptr) under = ImGui::GetMainViewport();
  canvas.draw_on(ImGui::GetForegroundDrawList(under));
  const Rect room_for_tip{under->Pos.x, under->Pos.y, under->Size.x, under->Size.y};
  Rect box{pointer.x + 14, pointer.y + 18, w + kPad * 2, h};
  if (box.right() > room_for_tip.right() - 4) box.x = std::max(room_for_tip.x + 4, pointer.x - box.w - 10);
  if (box.bottom() > room_for_tip.bottom() - 4) box.y = std::max(room_for_tip.y + 4, pointer.y - box.h - 10);
  canvas.fill({box.x + 2, box.y + 3, box.w, box.h}, 0x000000, 0.35F, 4);
  canvas.fill(box, c.raised, 1, 4);
  canvas.outline(box, mix(c.line, c.muted, 0.4F), 1, 1, 4);
  Rect room = box.inset(kPad, kPad);
  if (tip_.title.empty()) {
    canvas.paragraph(room, tip_text_, c.text);
    return;
  }
  canvas.text_in(room.take_top(18), tip_.title, c.text, Font::strong);
  if (!tip_.subtitle.empty()) canvas.text_in(room.take_top(16), tip_.subtitle, c.muted, Font::small);
  room.take_top(4);
  for (const Field& field : tip_.fields) {
    const Rect row = room.take_top(17);
    canvas.text_in(row, field.label, c.muted, Font::small);
    const std::string value = field.unit.empty() ? field.value : field.value + " " + field.unit;
    canvas.text_in(row, value, c.text, Font::mono_small, Align::right);
  }
  if (!tip_.reason.empty()) {
    room.take_top(4);
    canvas.paragraph(room, tip_.reason, c.text, Font::small);
  }
}

void Context::empty(const Rect& rect, std::string_view title, std::string_view hint) {
  const float w = std::min(rect.w - 32, 440.0F);
  if (w < 60 || rect.h < 24) return;
  const float hint_height = canvas.paragraph_height(w, hint, Font::small);
  const float y = rect.y + std::max(8.0F, (rect.h - hint_height - 22) / 2);
  canvas.text_in({rect.x + 16, y, rect.w - 32, 20}, title, colors().text, Font::body, Align::centre);
  const float hint_width = std::min(w, canvas.width(hint, Font::small) + 1);
  canvas.paragraph({rect.x + (rect.w - hint_width) / 2, y + 24, hint_width, rect.bottom() - y - 24}, hint,
                   colors().muted, Font::small);
}

}  // namespace shardscope::gui
