#include "app/gui/views/docks.h"

#include <imgui_internal.h>

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

constexpr ImGuiDockNodeFlags kSpace = ImGuiDockNodeFlags_AutoHideTabBar;

void leaves(const LayoutNode& node, std::vector<std::string>& out) {
  if (node.children.empty()) out.push_back(node.view);
  for (const LayoutNode& child : node.children) leaves(child, out);
}

std::string id_of(const std::string& layout, std::string_view panel) {
  return "###" + layout + "/" + std::string(panel);
}

/// A user's layout without saved settings starts as Watch.
LayoutNode preset_or_watch(const std::string& layout) {
  const bool preset = std::ranges::find(layout_names(), layout) != layout_names().end();
  return preset_layout(preset ? layout : "Watch");
}

ImGuiID node_of(const std::string& layout, const std::string& panel) {
  const std::string id = id_of(layout, panel);
  if (const ImGuiWindow* const window = ImGui::FindWindowByName(id.c_str())) return window->DockId;
  // Before a window's first frame its dock node is known from the settings only.
  const ImGuiWindowSettings* const settings = ImGui::FindWindowSettingsByID(ImHashStr(id.c_str()));
  return settings != nullptr ? settings->DockId : 0;
}

/// Depends on the layout's name only, so that it is the same in every window.
ImGuiID space_of(const std::string& layout) { return ImHashStr(("layout/" + layout).c_str()); }

void build(ImGuiID id, const std::string& layout, const LayoutNode& node, Rect room) {
  if (node.children.empty()) {
    ImGui::DockBuilderDockWindow(id_of(layout, node.view).c_str(), id);
    return;
  }
  const bool row = node.axis == Axis::row;
  const std::vector<float> sizes = child_sizes(node, room);
  // Split off from the end: the rest, from which no panel was split, is ImGui's central node. It persists
  // when its panel is moved away, so it is that of the first (main) panel.
  for (std::size_t i = node.children.size(); i-- > 1;) {
    const Rect piece = row ? room.take_right(sizes[i]) : room.take_bottom(sizes[i]);
    const float share = row ? piece.w / (piece.w + room.w) : piece.h / (piece.h + room.h);
    ImGuiID last = 0;
    ImGui::DockBuilderSplitNode(id, row ? ImGuiDir_Right : ImGuiDir_Down, share, &last, &id);
    build(last, layout, node.children[i], piece);
  }
  build(id, layout, node.children.front(), room);
}

}  // namespace

Docks::Shown& Docks::of(const std::string& layout) {
  Shown& shown = layouts_[layout];
  if (shown.panels.empty()) leaves(preset_or_watch(layout), shown.panels);
  return shown;
}

const std::vector<std::string>& Docks::shown(const std::string& layout) { return of(layout).panels; }

std::string Docks::window_name(const std::string& layout, std::string_view panel, std::string_view title) {
  return std::string(title) + id_of(layout, panel);
}

void Docks::submit(const std::string& layout, const Rect& room) {
  Shown& shown = of(layout);
  shown.space = space_of(layout);
  const ImGuiDockNode* const node = ImGui::DockBuilderGetNode(shown.space);
  if (node == nullptr || shown.rebuild) {
    shown.rebuild = false;
    ImGui::DockBuilderRemoveNode(shown.space);
    ImGui::DockBuilderAddNode(shown.space, kSpace | static_cast<int>(ImGuiDockNodeFlags_DockSpace));
    ImGui::DockBuilderSetNodePos(shown.space, {room.x, room.y});
    ImGui::DockBuilderSetNodeSize(shown.space, {room.w, room.h});
    build(shown.space, layout, preset_or_watch(layout), room);
    ImGui::DockBuilderFinish(shown.space);
  }
  moves_.carry_out();
  ImGui::SetCursorScreenPos({room.x, room.y});
  ImGui::DockSpace(shown.space, {room.w, room.h}, kSpace);
  // Keep the dock spaces of other layouts alive, or their windows would come back undocked.
  for (const auto& [name, other] : layouts_) {
    if (other.space != 0 && name != layout)
      ImGui::DockSpace(other.space, {room.w, room.h}, kSpace | ImGuiDockNodeFlags_KeepAliveOnly);
  }
}

void Docks::replace(const std::string& layout, const std::string& old_panel, const std::string& panel) {
  if (panel == old_panel) return;
  std::vector<std::string>& panels = of(layout).panels;
  const ImGuiID here = node_of(layout, old_panel), there = node_of(layout, panel);
  const auto old_at = std::ranges::find(panels, old_panel);
  const auto at = std::ranges::find(panels, panel);
  if (old_at == panels.end()) return;
  if (at != panels.end()) {
    const ImGuiWindow* const a_window = ImGui::FindWindowByName(id_of(layout, old_panel).c_str());
    const ImGuiWindow* const b_window = ImGui::FindWindowByName(id_of(layout, panel).c_str());
    std::swap(*old_at, *at);
    const auto docked = [](const ImGuiWindow* window) {
      return window != nullptr && window->DockNode != nullptr;
    };
    if (docked(a_window) && docked(b_window)) {
      swap_places(a_window, b_window);
      return;
    }
    // One is in a window of its own: it comes to the other.
    if (there != 0) ImGui::DockBuilderDockWindow(id_of(layout, old_panel).c_str(), there);
  } else {
    *old_at = panel;
  }
  if (here != 0) ImGui::DockBuilderDockWindow(id_of(layout, panel).c_str(), here);
  ImGui::MarkIniSettingsDirty();
}

void Docks::open(const std::string& layout, const std::string& panel, const std::string& beside_panel) {
  std::vector<std::string>& panels = of(layout).panels;
  if (std::ranges::find(panels, panel) != panels.end()) return;
  panels.push_back(panel);
  // At its previous position; initially as a tab beside the main panel.
  if (node_of(layout, panel) == 0) {
    const bool there = std::ranges::find(panels, beside_panel) != panels.end();
    const ImGuiID beside = node_of(layout, there ? beside_panel : panels.front());
    if (beside != 0) ImGui::DockBuilderDockWindow(id_of(layout, panel).c_str(), beside);
  }
  ImGui::MarkIniSettingsDirty();
}

bool Docks::share_a_place(const std::string& layout, const std::string& panel, const std::string& other) {
  const std::vector<std::string>& panels = of(layout).panels;
  if (std::ranges::find(panels, panel) == panels.end() || std::ranges::find(panels, other) == panels.end())
    return false;
  const ImGuiID place = node_of(layout, panel);
  return place != 0 && place == node_of(layout, other);
}

bool Docks::in_front(const std::string& layout, const std::string& panel) {
  const ImGuiWindow* const window = ImGui::FindWindowByName(id_of(layout, panel).c_str());
  return window != nullptr && window->DockTabIsVisible;
}

std::string Docks::move(const std::string& layout, const std::string& panel, PanelMove move) {
  const Shown& shown = of(layout);
  std::vector<std::string> windows;
  for (const std::string& name : shown.panels) windows.push_back(id_of(layout, name));
  return moves_.move(id_of(layout, panel), windows, shown.space, move);
}

void Docks::close(const std::string& layout, const std::string& panel) {
  std::vector<std::string>& panels = of(layout).panels;
  if (panels.size() > 1) std::erase(panels, panel);
  ImGui::MarkIniSettingsDirty();
}

void Docks::reset(const std::string& layout) {
  Shown& shown = of(layout);
  shown.panels.clear();
  shown.rebuild = true;
  of(layout);
  ImGui::MarkIniSettingsDirty();
}

std::vector<std::string> Docks::names() const {
  std::vector<std::string> out = layout_names();
  out.insert(out.end(), own_.begin(), own_.end());
  return out;
}

std::string Docks::save_as(const std::string& layout, const std::string& name) {
  if (name.find_first_not_of(' ') == std::string::npos) return "a layout needs a name";
  if (name.size() > 40 || name.find_first_of("[]#/\n\r") != std::string::npos)
    return "a name has at most 40 letters and none of [ ] # /";
  if (std::ranges::find(layout_names(), name) != layout_names().end())
    return name + " is a built-in layout; choose another name";
  if (name == layout) return {};  // its panels are saved as they are moved
  if (std::ranges::find(own_, name) == own_.end()) own_.push_back(name);
  const Shown from = of(layout);
  Shown& to = layouts_[name];
  to = {};
  to.panels = from.panels;
  to.space = space_of(name);
  // Pairs of window names: source and target of the dock settings.
  ImVector<const char*> pairs;
  std::vector<std::string> texts;
  texts.reserve(from.panels.size() * 2);
  for (const std::string& panel : from.panels) {
    pairs.push_back(texts.emplace_back(id_of(layout, panel)).c_str());
    pairs.push_back(texts.emplace_back(id_of(name, panel)).c_str());
  }
  if (ImGui::DockBuilderGetNode(to.space) != nullptr) ImGui::DockBuilderRemoveNode(to.space);
  ImGui::DockBuilderCopyDockSpace(from.space, to.space, &pairs);
  ImGui::DockBuilderFinish(to.space);
  ImGui::MarkIniSettingsDirty();
  return {};
}

void Docks::forget(const std::string& own_layout) {
  if (std::erase(own_, own_layout) == 0) return;
  layouts_.erase(own_layout);
  ImGui::MarkIniSettingsDirty();
}

void Docks::keep_in_settings() {
  ImGuiSettingsHandler handler;
  handler.TypeName = "Panels";
  handler.TypeHash = ImHashStr("Panels");
  handler.UserData = this;
  handler.ReadOpenFn = [](ImGuiContext*, ImGuiSettingsHandler* own, const char* name) -> void* {
    Docks& docks = *static_cast<Docks*>(own->UserData);
    // Layouts that are not presets are the user's own.
    if (std::ranges::find(layout_names(), name) == layout_names().end() &&
        std::ranges::find(docks.own_, name) == docks.own_.end())
      docks.own_.emplace_back(name);
    Shown& shown = docks.layouts_[name];
    shown.panels.clear();
    return &shown;
  };
  handler.ReadLineFn = [](ImGuiContext*, ImGuiSettingsHandler*, void* entry, const char* line) {
    std::vector<std::string>& panels = static_cast<Shown*>(entry)->panels;
    if (*line != 0 && std::ranges::find(panels, line) == panels.end()) panels.emplace_back(line);
  };
  handler.WriteAllFn = [](ImGuiContext*, ImGuiSettingsHandler* own, ImGuiTextBuffer* out) {
    for (const auto& [name, shown] : static_cast<Docks*>(own->UserData)->layouts_) {
      out->appendf("[Panels][%s]\n", name.c_str());
      for (const std::string& panel : shown.panels) out->appendf("%s\n", panel.c_str());
      out->append("\n");
    }
  };
  ImGui::AddSettingsHandler(&handler);
}

}  // namespace shardscope::gui
