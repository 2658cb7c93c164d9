#include "app/gui/views/context.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {

bool Context::under_pointer(const Rect& rect) const {
  return over_window && !ui.overlay.open && rect.contains(pointer.x, pointer.y);
}

bool Context::hovered(const Rect& rect) const {
  if (!over_window || ui.overlay.open || ui.captured != nullptr) return false;
  return rect.contains(pointer.x, pointer.y);
}

void Context::enter_window() {
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

unsigned Context::own_id(std::string_view label) {
  ImGuiID id = ImGui::GetCurrentWindow()->GetID(label.data(), label.data() + label.size());
  while (std::ranges::find(items_, id) != items_.end()) ++id;
  items_.push_back(id);
  return id;
}

Context::KeyItem Context::key_item(const Rect& rect, unsigned id) {
  if (ImGui::GetCurrentWindow()->SkipItems) return {};
  const ImRect box({rect.x, rect.y}, {rect.right(), rect.bottom()});
  const bool seen = ImGui::ItemAdd(box, id);
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  KeyItem item;
  item.at = g.NavId == id && g.NavCursorVisible;
  item.chosen = g.NavActivateId == id;
  if (seen) ImGui::RenderNavCursor(box, id);
  return item;
}

Context::KeyItem Context::key_item(const Rect& rect, std::string_view label) {
  const KeyItem item = key_item(rect, own_id(label));
  if (item.at) ui.keyboard_at = label;
  return item;
}

Context::KeyArea Context::key_area(const Rect& rect, std::string_view label) {
  if (ImGui::GetCurrentWindow()->SkipItems) return {};
  const unsigned id = own_id(label);
  KeyArea area{key_item(rect, id)};
  if (!area.at) return area;
  ui.keyboard_at = label;
  ui.in_key_area = true;
  // Owned keys do not move ImGui's cursor. Before they are pressed: it moves at the begin of a frame.
  for (const ImGuiKey key : {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow,
                             ImGuiKey_PageUp, ImGuiKey_PageDown})
    ImGui::SetKeyOwner(key, id);
  if (ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return area;  // a command
  const auto pressed = [](ImGuiKey key) { return int{ImGui::IsKeyPressed(key)}; };
  area.across = pressed(ImGuiKey_RightArrow) - pressed(ImGuiKey_LeftArrow);
  area.down = pressed(ImGuiKey_DownArrow) - pressed(ImGuiKey_UpArrow);
  area.menu = menu_key_pressed();
  return area;
}

bool Context::activated(const Rect& rect, std::string_view label) {
  return clicked(rect) || key_item(rect, label).chosen;
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
  if (rect.w < 1 || rect.h < 1) return false;
  const Palette& c = colors();
  const Rgb fill = look == Look::primary && enabled ? c.accent
                   : look == Look::chosen           ? mix(c.panel, c.accent, 0.28F)
                                                    : c.raised;
  ImGui::PushStyleColor(ImGuiCol_Button, ink(fill));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ink(mix(fill, c.text, 0.12F)));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, ink(mix(fill, c.text, 0.2F)));
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  ImGui::PushOverrideID(own_id(label));
  ImGui::SetCursorScreenPos({rect.x, rect.y});
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::Button("##button", {rect.w, rect.h});
  ImGui::EndDisabled();
  ImGui::PopID();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(3);
  if (ImGui::IsItemFocused() && ImGui::GetCurrentContext()->NavCursorVisible) ui.keyboard_at = label;
  // Without ImGui's delay: nothing is drawn while nothing happens.
  if (!tip_text.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tip(tip_text);
  return pressed;
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

void Context::scroll(std::string_view label, const Rect& room, float content, float& offset) {
  constexpr float kPerNotch = 48, kBar = 8;
  const float most = std::max(0.0F, content - room.h);
  if (most > 0 && hovered(room)) offset -= pointer.wheel * kPerNotch;
  offset = std::clamp(offset, 0.0F, most);
  if (most <= 0 || ImGui::GetCurrentWindow()->SkipItems) return;
  // Not that of an ImGui child window: what scrolls is drawn by hand, where the pointer's drags and the wheel
  // have meanings of their own. In whole pixels, as ImGui's scroll positions are.
  ImS64 at = std::llround(offset);
  const ImRect bar({room.right() - kBar, room.y}, {room.right(), room.bottom()});
  if (ImGui::ScrollbarEx(bar, own_id(label), ImGuiAxis_Y, &at, std::llround(room.h), std::llround(content)))
    offset = std::clamp(static_cast<float>(at), 0.0F, most);
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
  ImGui::PushStyleColor(ImGuiCol_HeaderHovered, ink(colors().raised));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushOverrideID(own_id(id));
  ImGui::SetCursorScreenPos({rect.x, rect.y});
  const bool chosen = ImGui::Selectable("##row", false, ImGuiSelectableFlags_None, {rect.w, rect.h});
  if (ImGui::IsItemFocused() && ImGui::GetCurrentContext()->NavCursorVisible) ui.keyboard_at = id;
  ImGui::PopID();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  return {ImGui::IsItemHovered(), chosen};
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
  if (tip_.title.empty() && tip_text_.empty()) return;
  constexpr float kWidest = 420;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8, 8});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8, 3});
  if (ImGui::BeginTooltipEx(ImGuiTooltipFlags_OverridePrevious, ImGuiWindowFlags_None)) {
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + kWidest);
    if (tip_.title.empty()) {
      const FontScope body(canvas.fonts(), Font::body);
      ImGui::TextUnformatted(tip_text_.data(), tip_text_.data() + tip_text_.size());
    } else {
      draw_details(kWidest);
    }
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar(2);
}

std::string Context::tip_line() const {
  if (tip_.title.empty()) return tip_text_;
  std::string line = tip_.title;
  for (const std::string& part : {tip_.subtitle, tip_.reason})
    if (!part.empty()) line += "; " + part;
  for (const Field& field : tip_.fields)
    line += "; " + field.label + ": " + field.value + (field.unit.empty() ? "" : " " + field.unit);
  return line;
}

void Context::draw_details(float widest) const {
  const Palette& c = colors();
  const auto text_of = [](const Field& field) {
    return field.unit.empty() ? field.value : field.value + " " + field.unit;
  };
  float width = std::max(canvas.width(tip_.title, Font::strong), canvas.width(tip_.subtitle, Font::small));
  for (const Field& field : tip_.fields)
    width = std::max(
        width, canvas.width(field.label, Font::small) + 24 + canvas.width(text_of(field), Font::mono_small));
  width = std::clamp(std::ceil(width), 180.0F, widest);
  {
    const FontScope strong(canvas.fonts(), Font::strong);
    ImGui::TextUnformatted(tip_.title.c_str());
  }
  const FontScope small(canvas.fonts(), Font::small);
  if (!tip_.subtitle.empty()) ImGui::TextColored(ink(c.muted), "%s", tip_.subtitle.c_str());
  const float left = ImGui::GetCursorPosX();
  for (const Field& field : tip_.fields) {
    const std::string value = text_of(field);
    const float value_width = canvas.width(value, Font::mono_small);
    ImGui::TextColored(ink(c.muted), "%s", field.label.c_str());
    // A value that is too long for the line is below its label.
    if (canvas.width(field.label, Font::small) + 24 + value_width <= width)
      ImGui::SameLine(left + width - value_width, 0);
    const FontScope mono(canvas.fonts(), Font::mono_small);
    ImGui::TextUnformatted(value.c_str());
  }
  // Makes room for the values, which are aligned at the right.
  ImGui::Dummy({width, 0});
  if (!tip_.reason.empty()) ImGui::TextUnformatted(tip_.reason.c_str());
}

void Context::empty(const Rect& rect, std::string_view title, std::string_view hint) {
  const float w = std::min(rect.w - 32, 440.0F);
  if (w < 60 || rect.h < 24) return;
  const float hint_height = canvas.paragraph_height(w, hint, Font::small);
  const float y = rect.y + std::max(8.0F, (rect.h - hint_height - 22) / 2);
  canvas.text_in({rect.x + 16, y, rect.w - 32, 20}, title, colors().text, Font::body, Align::centre);
  canvas.paragraph({rect.x + (rect.w - w) / 2, y + 24, w, rect.bottom() - y - 24}, hint, colors().muted,
                   Font::small, Align::centre);
}

}  // namespace shardscope::gui
