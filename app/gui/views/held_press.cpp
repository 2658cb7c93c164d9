#include "app/gui/views/held_press.h"

#include <imgui_internal.h>

#include <algorithm>

namespace shardscope::gui {
namespace {

bool is_move(const ImGuiInputEvent& event, const ImVec2& from) {
  return event.Type == ImGuiInputEventType_MousePos &&
         (event.MousePos.PosX != from.x || event.MousePos.PosY != from.y);
}

bool is_press(const ImGuiInputEvent& event) {
  return event.Type == ImGuiInputEventType_MouseWheel ||
         (event.Type == ImGuiInputEventType_MouseButton && event.MouseButton.Down);
}

}  // namespace

struct HeldPress::Events {
  ImVector<ImGuiInputEvent> list;
};

HeldPress::HeldPress() : events_(std::make_unique<Events>()) {}
HeldPress::~HeldPress() = default;

bool HeldPress::holds() const noexcept { return !events_->list.empty(); }

void HeldPress::release() {
  ImVector<ImGuiInputEvent>& queue = ImGui::GetCurrentContext()->InputEventsQueue;
  if (!holds()) return;
  // ImGui leaves events of a burst in its queue, some of which may be older than the held press.
  const ImU32 press = events_->list.front().EventId;
  const auto* const later =
      std::find_if(queue.begin(), queue.end(), [&](const auto& event) { return event.EventId > press; });
  ImVector<ImGuiInputEvent> all;
  for (const auto* event = queue.begin(); event != later; ++event) all.push_back(*event);
  for (const ImGuiInputEvent& event : events_->list) all.push_back(event);
  for (const auto* event = later; event != queue.end(); ++event) all.push_back(*event);
  queue.swap(all);
  events_->list.clear();
}

void HeldPress::hold() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  ImVector<ImGuiInputEvent>& queue = ImGui::GetCurrentContext()->InputEventsQueue;
  const auto* const moved = std::find_if(queue.begin(), queue.end(),
                                         [&](const auto& event) { return is_move(event, g.IO.MousePos); });
  const auto* const press = std::find_if(moved, static_cast<const ImGuiInputEvent*>(queue.end()), is_press);
  if (press == queue.end()) return;
  for (const auto* event = press; event != queue.end(); ++event) events_->list.push_back(*event);
  queue.resize(queue.index_from_ptr(press));
}

}  // namespace shardscope::gui
