#include "app/gui/views/dock_moves.h"

#include <imgui_internal.h>

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

constexpr float kResize = 32, kMove = 48;  // points by each press
constexpr float kSmallest = 60;
constexpr float kAtEdge = 0.3F, kHalf = 0.5F;  // shares of the place that is divided

ImGuiDir dir_of(std::optional<Side> side) {
  static constexpr ImGuiDir kDirs[] = {ImGuiDir_Left, ImGuiDir_Right, ImGuiDir_Up, ImGuiDir_Down};
  return side ? kDirs[static_cast<int>(*side)] : ImGuiDir_None;
}

bool sideways(Side side) { return side == Side::left || side == Side::right; }
float sign(Side side) { return side == Side::right || side == Side::down ? 1.0F : -1.0F; }

/// A place of the dock space with the name of the panel in front of it; the main place may have none.
struct DockPlace {
  ImGuiDockNode* node = nullptr;
  std::string front;
};

std::vector<DockPlace> places_of(const std::vector<std::string>& windows, unsigned dock_space) {
  std::vector<DockPlace> out;
  for (const std::string& name : windows) {
    const ImGuiWindow* const window = ImGui::FindWindowByName(name.c_str());
    if (window == nullptr || window->DockNode == nullptr) continue;
    const auto known = std::ranges::find(out, window->DockNode, &DockPlace::node);
    if (known == out.end())
      out.push_back({window->DockNode, name});
    else if (window->DockTabIsVisible)
      known->front = name;
  }
  ImGuiDockNode* const main = ImGui::DockBuilderGetCentralNode(dock_space);
  if (main != nullptr && main->Windows.Size == 0) out.push_back({main, {}});
  return out;
}

/// Moves the border between the two parts of the innermost split on that axis.
std::string resize(ImGuiWindow* window, Side side) {
  if (window->DockNode == nullptr) {
    const float by = sign(side) * kResize;
    ImGui::SetWindowSize(window, {std::max(kSmallest, window->SizeFull.x + (sideways(side) ? by : 0)),
                                  std::max(kSmallest, window->SizeFull.y + (sideways(side) ? 0 : by))});
    return {};
  }
  const ImGuiAxis axis = sideways(side) ? ImGuiAxis_X : ImGuiAxis_Y;
  for (ImGuiDockNode* node = window->DockNode; node->ParentNode != nullptr; node = node->ParentNode) {
    const ImGuiDockNode* const parent = node->ParentNode;
    if (parent->SplitAxis != axis) continue;
    ImGuiDockNode* const other = parent->ChildNodes[parent->ChildNodes[0] == node ? 1 : 0];
    if (!other->IsVisible) continue;
    const float whole = node->Size[axis] + other->Size[axis];
    if (whole < 2 * kSmallest) break;
    const float size = std::clamp(node->Size[axis] + sign(side) * kResize, kSmallest, whole - kSmallest);
    if (size == node->Size[axis]) break;
    node->SizeRef[axis] = node->Size[axis] = size;
    other->SizeRef[axis] = other->Size[axis] = whole - size;
    ImGui::MarkIniSettingsDirty();
    return {};
  }
  return sideways(side) ? "The panel cannot get wider or narrower" : "The panel cannot get taller or shorter";
}

}  // namespace

void swap_places(const ImGuiWindow* a_window, const ImGuiWindow* b_window) {
  ImGuiDockNode *const a_node = a_window->DockNode, *const b_node = b_window->DockNode;
  if (a_node == nullptr || b_node == nullptr || a_node == b_node) return;
  // A place that becomes empty is removed, unless it is the main one.
  const ImGuiDockNodeFlags a_flags = a_node->MergedFlags, b_flags = b_node->MergedFlags;
  a_node->MergedFlags |= ImGuiDockNodeFlags_CentralNode;
  b_node->MergedFlags |= ImGuiDockNodeFlags_CentralNode;
  ImGui::DockBuilderDockWindow(a_window->Name, b_node->ID);
  ImGui::DockBuilderDockWindow(b_window->Name, a_node->ID);
  a_node->MergedFlags = a_flags;
  b_node->MergedFlags = b_flags;
  ImGui::MarkIniSettingsDirty();
}

void DockMoves::dock(ImGuiWindow* window, Pending pending) {
  if (window->DockNode != nullptr) ImGui::DockContextQueueUndockWindow(ImGui::GetCurrentContext(), window);
  pending_ = std::move(pending);
}

void DockMoves::carry_out() {
  if (!pending_) return;
  const Pending move = *std::exchange(pending_, std::nullopt);
  ImGuiWindow* const window = ImGui::FindWindowByName(move.window.c_str());
  // It has left its place at the begin of this frame. If not, it was about to be docked when this was asked.
  if (window == nullptr || window->DockNode != nullptr) return;
  const ImGuiWindow* const beside =
      move.beside.empty() ? nullptr : ImGui::FindWindowByName(move.beside.c_str());
  ImGuiDockNode* const whole = ImGui::DockBuilderGetNode(move.dock_space);
  ImGuiDockNode* const node = beside != nullptr && beside->DockNode != nullptr ? beside->DockNode
                              : move.side                                      ? whole
                                          : ImGui::DockBuilderGetCentralNode(move.dock_space);
  if (node == nullptr) return;
  ImGui::DockContextQueueDock(ImGui::GetCurrentContext(), nullptr, node, window, dir_of(move.side),
                              node == whole ? kAtEdge : kHalf, node == whole && move.side);
  ImGui::MarkIniSettingsDirty();
}

std::string DockMoves::over(ImGuiWindow* window, const std::vector<std::string>& windows, unsigned dock_space,
                            Side side) {
  if (window->DockNode == nullptr) {
    ImGui::SetWindowPos(window, {window->Pos.x + (sideways(side) ? sign(side) * kMove : 0),
                                 window->Pos.y + (sideways(side) ? 0 : sign(side) * kMove)});
    return {};
  }
  const std::vector<DockPlace> places = places_of(windows, dock_space);
  std::vector<Rect> rects;
  for (const DockPlace& place : places)
    rects.push_back({place.node->Pos.x, place.node->Pos.y, place.node->Size.x, place.node->Size.y});
  const auto from = std::ranges::find(places, window->DockNode, &DockPlace::node);
  if (from == places.end()) return "The panel is not shown";
  const bool alone = window->DockNode->Windows.Size < 2;
  const bool main = alone && window->DockNode->IsCentralNode();
  const auto beside = place_beside(rects, static_cast<std::size_t>(from - places.begin()), side);
  if (beside && main && !places[*beside].front.empty()) {
    // ImGui keeps the main place when it is empty: the panel there comes into it instead.
    if (const ImGuiWindow* const front = ImGui::FindWindowByName(places[*beside].front.c_str()))
      swap_places(window, front);
    return {};
  }
  if (beside) {
    dock(window, {window->Name, places[*beside].front, dock_space, std::nullopt});
    return {};
  }
  const ImGuiDockNode* const whole = ImGui::DockBuilderGetNode(dock_space);
  const int along = sideways(side) ? ImGuiAxis_Y : ImGuiAxis_X;
  const bool whole_edge = whole != nullptr && window->DockNode->Size[along] >= whole->Size[along] - 1;
  if (main || (alone && whole_edge)) return "The panel is at that edge";
  dock(window, {window->Name, {}, dock_space, side});
  return {};
}

std::string DockMoves::split(ImGuiWindow* window, unsigned dock_space, Side side) {
  if (window->DockNode == nullptr) return "The panel is in a window of its own";
  for (const ImGuiWindow* const other : window->DockNode->Windows) {
    if (other == window) continue;
    dock(window, {window->Name, other->Name, dock_space, side});
    return {};
  }
  return "The panel has no other tabs beside it";
}

std::string DockMoves::tear_off(ImGuiWindow* window, const std::vector<std::string>& windows,
                                unsigned dock_space) {
  if (window->DockNode == nullptr) {
    // Into the main place if that is empty, else a tab of the first.
    const std::vector<DockPlace> places = places_of(windows, dock_space);
    dock(window, {window->Name, places.empty() || places.back().front.empty() ? "" : places.front().front,
                  dock_space, std::nullopt});
    return {};
  }
  if (windows.size() < 2) return "It is the only panel";
  ImGui::DockContextQueueUndockWindow(ImGui::GetCurrentContext(), window);
  ImGui::MarkIniSettingsDirty();
  return {};
}

std::string DockMoves::move(const std::string& name, const std::vector<std::string>& windows,
                            unsigned dock_space, PanelMove move) {
  ImGuiWindow* const window = ImGui::FindWindowByName(name.c_str());
  if (window == nullptr || !window->WasActive) return "The panel is not shown";
  switch (move.what) {
    case PanelMove::What::over:
      return over(window, windows, dock_space, move.side);
    case PanelMove::What::split:
      return split(window, dock_space, move.side);
    case PanelMove::What::resize:
      return resize(window, move.side);
    case PanelMove::What::tear_off:
      return tear_off(window, windows, dock_space);
  }
  return {};
}

}  // namespace shardscope::gui
