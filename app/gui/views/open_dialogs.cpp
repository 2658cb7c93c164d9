// The file browser, and the dialog to connect to a run.
#include <ctime>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {
namespace {

/// Width of the address column, in pixels.
constexpr float kAddress = 170;

std::string day_text(std::int64_t seconds) {
  const auto when = static_cast<std::time_t>(seconds);
  std::tm local{};
  char text[32] = "";
  if (localtime_r(&when, &local) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

}  // namespace

void Dialogs::browser(Context& ctx, const Parts& parts, bool second) {
  namespace fs = std::filesystem;
  if (ctx.ui.dialog_opened) {
    const fs::path shown =
        ctx.app.run->recorded() ? fs::path(ctx.app.run->source()).parent_path() : fs::path();
    files_ = list_recordings(shown);
    text_ = files_.folder.string() + "/";
  }
  const auto open = [&](const fs::path& file) {
    ctx.app.open_request = {file.string(), {}, second};
    close(ctx);
  };
  const auto enter = [&](const fs::path& folder) {
    files_ = list_recordings(folder);
    text_ = files_.folder.string() + (files_.folder == files_.folder.root_path() ? "" : "/");
    picked_.clear();
    problem_.clear();
  };
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  if (text_field("##path", "folder or recording", text_, ImGuiInputTextFlags_EnterReturnsTrue)) {
    std::error_code ignored;
    if (fs::is_directory(text_, ignored))
      enter(text_);
    else if (fs::is_regular_file(text_, ignored))
      open(text_);
    else
      problem_ = text_ + ": there is no such file or folder";
  }
  if (!files_.problem.empty()) problem_ = files_.problem;
  if (!problem_.empty()) ImGui::TextColored(ink(ctx.colors().of(Meaning::trouble)), "%s", problem_.c_str());
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp;
  fs::path to_enter;
  fs::path to_open;
  bool enter_list = arrow_enters("##files");
  if (ImGui::BeginTable("##files", 3, kFlags, {0, 320})) {
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn("Name", 0, 3);
    ImGui::TableSetupColumn("Size", 0, 0.8F);
    ImGui::TableSetupColumn("Changed", 0, 1.2F);
    ImGui::TableHeadersRow();
    const auto row = [&](const std::string& name, const FileEntry& entry, const fs::path& path) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      if (std::exchange(enter_list, false)) ImGui::SetKeyboardFocusHere();
      if (ImGui::Selectable((entry.folder ? name + "/" : name).c_str(), picked_ == name,
                            ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick |
                                ImGuiSelectableFlags_NoAutoClosePopups)) {
        picked_ = name;
        const bool at_once = ImGui::IsMouseDoubleClicked(0) || ImGui::IsKeyPressed(ImGuiKey_Enter) ||
                             ImGui::IsKeyPressed(ImGuiKey_Space);
        if (entry.folder && at_once)
          to_enter = path;
        else if (!entry.folder && at_once)
          to_open = path;
        else
          text_ = path.string();
      }
      ImGui::TableNextColumn();
      if (!entry.folder)
        ImGui::TextDisabled("%s", bytes(static_cast<std::int64_t>(entry.bytes)).text().c_str());
      ImGui::TableNextColumn();
      if (entry.changed_s > 0) ImGui::TextDisabled("%s", day_text(entry.changed_s).c_str());
    };
    if (files_.folder.has_parent_path() && files_.folder != files_.folder.root_path())
      row("..", {"..", true, 0, 0}, files_.folder.parent_path());
    for (const FileEntry& entry : files_.entries) row(entry.name, entry, files_.folder / entry.name);
    ImGui::EndTable();
  }
  if (!parts.recent.files.empty() && ImGui::BeginCombo("##recent", "Recent recordings")) {
    for (const std::string& file : parts.recent.files) {
      if (ImGui::Selectable(file.c_str())) to_open = file;
    }
    ImGui::EndCombo();
  }
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(text_, ignored);
  if (confirm(ctx, second ? "Compare" : "Open", is_file)) to_open = text_;
  if (!to_enter.empty()) enter(to_enter);
  if (!to_open.empty()) open(to_open);
}

void Dialogs::connect(Context& ctx, const Parts& parts, bool second) {
  const auto& known = parts.recent.endpoints;
  const std::vector<LocalRun>& here = local_.at(ctx.seconds);
  if (ctx.ui.dialog_opened) {
    text_ = !here.empty()   ? here.front().endpoint
            : known.empty() ? "tcp://127.0.0.1:5711"
                            : known.front().address;
    key_ = !here.empty() || known.empty() ? std::string() : known.front().key_file;
  }
  ImGui::TextUnformatted("Where the run listens (run --listen, record --listen)");
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  bool entered =
      text_field("##address", "tcp://host:port or ipc://path", text_, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SetNextItemWidth(-1);
  entered |= text_field("##key", "key file; empty: found by the address, as with view --key", key_,
                        ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::TextDisabled("On another machine: leave this running, then tcp://127.0.0.1:5711");
  {
    const FontScope mono(ctx.canvas.fonts(), Font::mono_small);
    ImGui::TextUnformatted("ssh -N -L 5711:localhost:5711 -L 5712:localhost:5712 HOST");
  }
  ImGui::PushTextWrapPos(0);
  if (!problem_.empty()) ImGui::TextColored(ink(ctx.colors().of(Meaning::trouble)), "%s", problem_.c_str());
  ImGui::PopTextWrapPos();
  const auto choice = [&](const std::string& address, const std::string& key, const std::string& what) {
    ImGui::PushID(what.c_str());
    if (ImGui::Selectable(address.c_str(), address == text_, ImGuiSelectableFlags_NoAutoClosePopups)) {
      text_ = address;
      key_ = key;
    }
    if (!what.empty()) {
      item_tip("%s", what.c_str());
      ImGui::SameLine(kAddress);
      cut_line(ctx.canvas, what, ctx.colors().muted);
    }
    ImGui::PopID();
  };
  if (!here.empty()) ImGui::SeparatorText("On this machine");
  for (const LocalRun& run : here) choice(run.endpoint, {}, run.command);
  if (!known.empty()) ImGui::SeparatorText("Recent");
  for (const Endpoint& endpoint : known)
    choice(endpoint.address, endpoint.key_file, endpoint.key_file.empty() ? "" : "key " + endpoint.key_file);
  if (confirm(ctx, second ? "Compare" : "Connect") || entered) {
    try {
      (void)instrumentation::endpoints_of(text_);
      ctx.app.open_request = {text_, key_, second};
      close(ctx);
    } catch (const std::exception& wrong) {
      problem_ = wrong.what();
    }
  }
}

}  // namespace shardscope::gui
