#include "app/gui/views/key_tip.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

#include "app/gui/views/context.h"

namespace shardscope::gui {

void KeyTip::toggle() {
  if (shown_) {
    hide();
    return;
  }
  shown_ = true;
  at_.reset();
  moved_ = {};
}

void KeyTip::hide() {
  put_back_ |= std::exchange(shown_, false);
  at_.reset();
}

void KeyTip::put_pointer() {
  constexpr float kMoved = 1;  // pixels: a pointer at rest may be reported anew
  ImGuiContext& g = *ImGui::GetCurrentContext();
  constexpr Point kNowhere{-FLT_MAX, -FLT_MAX};
  const ImGuiInputEvent* press = nullptr;  // a button or the wheel while the pointer is at the tip's point
  Point press_from = kNowhere;
  for (const ImGuiInputEvent& event : g.InputEventsQueue) {
    if (event.Type == ImGuiInputEventType_MouseButton || event.Type == ImGuiInputEventType_MouseWheel) {
      hide();
      if (std::exchange(put_back_, false)) {
        press = &event;
        press_from = user_.value_or(kNowhere);
      }
    }
    if (event.Type != ImGuiInputEventType_MousePos) continue;
    const Point to{event.MousePos.PosX, event.MousePos.PosY};
    if (put_ == to) continue;
    if (user_ && (std::fabs(to.x - user_->x) > kMoved || std::fabs(to.y - user_->y) > kMoved)) {
      shown_ = put_back_ = false;
      at_.reset();
    }
    user_ = to;
  }
  if (press != nullptr) {
    // Before it, or what is at the tip's point would be clicked.
    ImGuiInputEvent back;
    back.Type = ImGuiInputEventType_MousePos;
    back.Source = ImGuiInputSource_Mouse;
    back.EventId = press->EventId;  // HeldPress::release() keeps it before the press
    back.MousePos = {press_from.x, press_from.y, ImGuiMouseSource_Mouse};
    g.InputEventsQueue.insert(press, back);
  }
  if (std::exchange(put_back_, false)) {
    const Point back = user_.value_or(kNowhere);
    g.IO.AddMousePosEvent(back.x, back.y);
  }
  put_ = at_;
  if (!put_) return;
  g.IO.AddMousePosEvent(put_->x, put_->y);
  // A panel in a window of its own: ImGui looks for what is under the pointer in that window only.
  if (g.NavWindow != nullptr && (g.IO.BackendFlags & ImGuiBackendFlags_HasMouseHoveredViewport) != 0)
    g.IO.AddMouseViewportEvent(g.NavWindow->Viewport->ID);
}

void KeyTip::follow(Context& ctx) {
  const std::optional<Point> aimed = std::exchange(aimed_, std::nullopt);
  if (!shown_) return;
  ImGuiContext& g = *ImGui::GetCurrentContext();
  // A menu, dialog or text field has the keyboard: Escape is its own.
  if (g.IO.WantTextInput ||
      ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel)) {
    hide();
    return;
  }
  const ImGuiWindow* const window = g.NavWindow;
  if (window == nullptr) return;
  ImRect item = window->Rect();
  if (g.NavId != 0) item = ImGui::WindowRectRelToAbs(g.NavWindow, window->NavRectRel[g.NavLayer]);
  item.ClipWith(window->Rect());
  const Point of = aimed.value_or(Point{item.GetCenter().x, item.GetCenter().y});
  if (of_ != of) moved_ = {};
  of_ = of;
  // Owned keys neither move ImGui's cursor nor take the keyboard away from the panel.
  const ImGuiID owner = ImHashStr("tool tip");
  ImGui::SetKeyOwner(ImGuiKey_Escape, owner);
  if (g.IO.KeyCtrl) {
    for (const ImGuiKey key : {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow})
      ImGui::SetKeyOwner(key, owner);
  }
  constexpr float kStep = 8;
  const auto presses = [&](int key) { return static_cast<float>(ctx.presses(key, key::kCtrl)); };
  moved_.x += kStep * (presses(key::kRight) - presses(key::kLeft));
  moved_.y += kStep * (presses(key::kDown) - presses(key::kUp));
  const ImRect screen = static_cast<const ImGuiViewportP*>(window->Viewport)->GetMainRect();
  // Whole pixels, as ImGui's pointer.
  const Point at{std::floor(std::clamp(of.x + moved_.x, screen.Min.x, screen.Max.x - 1)),
                 std::floor(std::clamp(of.y + moved_.y, screen.Min.y, screen.Max.y - 1))};
  if (at_ != at) changed_at_ = ctx.seconds;
  at_ = at;
  // ImGui shows the tips of its own items after a delay.
  constexpr double kDelay = 0.8;
  if (ctx.seconds - changed_at_ < kDelay) ctx.moving = true;
}

}  // namespace shardscope::gui
