// The window's menus: every command, layout and panel.
#include <algorithm>

#include "app/gui/views/commands.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/palette_entries.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {

void Workspace::menu_items(Context& ctx, Menu menu) {
  bool first = true;
  for (const Command& command : commands()) {
    if (command.menu != menu) continue;
    if (command.line_before && !first) ImGui::Separator();
    first = false;
    const bool checked = command.checked != nullptr && command.checked(ctx);
    if (ImGui::MenuItem(command.name, command.keys, checked, command.available(ctx))) command.run(ctx);
  }
}

void Workspace::layouts_menu(Context& ctx) {
  AppState& app = ctx.app;
  int number = 1;
  for (const std::string& name : docks_.names()) {
    const std::string keys = number <= 9 ? std::to_string(number) : "";
    ++number;
    if (ImGui::MenuItem(name.c_str(), keys.c_str(), name == app.layout_name)) app.set_layout(name);
  }
  if (std::ranges::find(app.own_layouts, app.layout_name) == app.own_layouts.end()) return;
  ImGui::Separator();
  const std::string remove = "Delete \"" + app.layout_name + "\"";
  if (ImGui::MenuItem(remove.c_str())) delete_shown_layout(app, docks_);
}

void Workspace::panels_menu(Context& ctx) {
  const std::string layout = ctx.app.layout_name;
  const std::vector<std::string>& shown = docks_.shown(layout);
  for (const auto& view : registry_.all()) {
    const std::string name(view->name());
    const bool is_shown = std::ranges::find(shown, name) != shown.end();
    if (!ImGui::MenuItem(std::string(view->title()).c_str(), nullptr, is_shown)) continue;
    if (is_shown)
      docks_.close(layout, name);
    else
      ctx.ui.show_panel = name;
  }
}

void Workspace::recent_menu(Context& ctx) {
  if (recent_.files.empty()) ImGui::TextDisabled("no recent files");
  for (const std::string& file : recent_.files) {
    if (ImGui::MenuItem(file.c_str())) ctx.app.open_request = {file, {}, false};
  }
}

/// Returns the x position where the menus end.
float Workspace::menu_bar(Context& ctx) {
  const FontScope body(ctx.canvas.fonts(), Font::body);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {10, 8});
  for (int i = 0; i < kMenuCount; ++i) {
    const auto menu = static_cast<Menu>(i);
    if (menu == Menu::panel || !ImGui::BeginMenu(name_of(menu))) continue;
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {8, 5});
    if (menu == Menu::view) {
      if (ImGui::BeginMenu("Layout")) {
        layouts_menu(ctx);
        ImGui::EndMenu();
      }
      if (ImGui::BeginMenu("Panels")) {
        panels_menu(ctx);
        ImGui::EndMenu();
      }
      if (ImGui::BeginMenu("Move the panel")) {
        menu_items(ctx, Menu::panel);
        ImGui::EndMenu();
      }
      ImGui::Separator();
    }
    if (menu == Menu::file && ImGui::BeginMenu("Open recent")) {
      recent_menu(ctx);
      ImGui::EndMenu();
    }
    menu_items(ctx, menu);
    ImGui::PopStyleVar();
    ImGui::EndMenu();
  }
  ImGui::PopStyleVar();
  return ImGui::GetCursorScreenPos().x;
}

}  // namespace shardscope::gui
