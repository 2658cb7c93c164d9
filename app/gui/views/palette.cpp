// The palette: commands, panels, layouts, and whatever of the run has a name, by what is typed.
#include <algorithm>
#include <functional>

#include "app/gui/model/match.h"
#include "app/gui/views/commands.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
namespace {

struct PaletteEntry {
  std::string text, kind, hint;
  std::function<void()> act;
};

}  // namespace

void Dialogs::palette(Context& ctx, const Parts& parts) {
  AppState& app = ctx.app;
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  // With a history the field keeps the arrows up and down, which else would take the cursor into the list.
  const bool entered = text_field("##palette", "a command, step, rank, module, parameter, finding...", text_,
                                  ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory);
  if (text_ != searched_) {
    searched_ = text_;
    names_ = find_names(app, text_, 12);
    chosen_ = 0;
  }
  std::vector<PaletteEntry> entries;
  for (const Command& command : commands()) {
    if (command.run == nullptr || !command.available(ctx) || !matches(command.name, text_)) continue;
    entries.push_back(
        {command.name, name_of(command.menu), command.keys, [&ctx, &command] { command.run(ctx); }});
  }
  for (const auto& view : parts.views.all()) {
    std::string name = "Show " + std::string(view->title());
    if (matches(name, text_))
      entries.push_back({std::move(name), "panel", "", [&ctx, &view] { ctx.ui.show_panel = view->name(); }});
  }
  for (const std::string& shown : parts.docks.shown(app.layout_name)) {
    View* const view = parts.views.find(shown);
    if (view == nullptr) continue;
    for (const Choice& choice : view->choices(app)) {
      for (std::size_t i = 0; i < choice.labels.size(); ++i) {
        std::string name = std::string(view->title()) + ": " + choice.labels[i];
        if (static_cast<int>(i) == choice.chosen || !(matches(name, text_) || matches(choice.name, text_)))
          continue;
        entries.push_back(
            {std::move(name), "choice", choice.name,
             [&app, choose = choice.choose, index = static_cast<int>(i)] { choose(app, index); }});
      }
    }
  }
  for (const std::string& layout : parts.docks.names()) {
    std::string name = "Layout " + layout;
    if (matches(name, text_))
      entries.push_back({std::move(name), "layout", "", [&app, layout] { app.set_layout(layout); }});
  }
  for (const NameHit& hit : names_) {
    entries.push_back({hit.text, word(hit.kind), hit.detail, [&ctx, hit] {
                         go_to_name(ctx.app, hit);
                         if (hit.kind == NameKind::finding) ctx.ui.show_panel = "findings";
                       }});
  }
  const int count = static_cast<int>(entries.size());
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
  const bool moved = ImGui::IsKeyPressed(ImGuiKey_DownArrow) || ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
  int picked = entered && count > 0 ? chosen_ : -1;
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp;
  if (count == 0) ImGui::TextDisabled("No command or name contains this.");
  if (count > 0 && ImGui::BeginTable("##entries", 3, kFlags, {0, 380})) {
    ImGui::TableSetupColumn("##kind", ImGuiTableColumnFlags_WidthFixed, 84);
    ImGui::TableSetupColumn("##name", 0, 3);
    ImGui::TableSetupColumn("##hint", 0, 1);
    for (int i = 0; i < count; ++i) {
      const PaletteEntry& entry = entries[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::PushID(i);
      if (ImGui::Selectable("##row", i == chosen_, ImGuiSelectableFlags_SpanAllColumns)) picked = i;
      if (i == chosen_ && moved) ImGui::SetScrollHereY();
      ImGui::SameLine(0, 0);
      ImGui::TextDisabled("%s", entry.kind.c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(entry.text.c_str());
      ImGui::TableNextColumn();
      ImGui::TextDisabled("%s", entry.hint.c_str());
      ImGui::PopID();
    }
    ImGui::EndTable();
  }
  if (picked < 0) return;
  close(ctx);
  entries[static_cast<std::size_t>(picked)].act();  // may open another dialog
}

}  // namespace shardscope::gui
