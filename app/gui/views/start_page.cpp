// Start page, without an open run: what the program is, recent runs, and the ways to open
// one.
#include <filesystem>
#include <string>
#include <vector>

#include "app/gui/model/local_runs.h"
#include "app/gui/model/recent.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

constexpr float kPageWidth = 720;

void ways_to_open(Context& ctx) {
  const auto way = [&](const char* label, const char* tip, Dialog dialog) {
    if (ImGui::Button(label)) ctx.ui.open(dialog);
    item_tip("%s", tip);
    ImGui::SameLine();
  };
  way("Open a recording...", "A file *.zscope (Ctrl+O); it can also be dropped here, and two to compare them",
      Dialog::open_recording);
  way("Connect to a run...", "A live run, on this or another machine (Ctrl+Shift+C)", Dialog::connect);
  if (ImGui::Button("Tour on a sample run")) ctx.ui.sample = true;
  item_tip("Simulates a small ZeRO-3 run with something to find, opens it and shows the panels");
}

/// File name, then its folder; missing files are pale and disabled.
void recent_file(Context& ctx, const std::string& file) {
  std::error_code ignored;
  const std::filesystem::path path(file);
  const bool there = std::filesystem::exists(path, ignored);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(file.c_str());
  ImGui::BeginDisabled(!there);
  if (ImGui::Selectable(path.filename().string().c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
    ctx.app.open_request = {file, {}, false};
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    padded_tip("%s%s", file.c_str(), there ? "" : "\nis no longer there");
  ImGui::PopID();
  ImGui::TableNextColumn();
  cut_line(ctx.canvas, path.parent_path().string(), ctx.colors().muted);
}

/// A recent address, and its status.
void endpoint_row(Context& ctx, const Endpoint& endpoint, const std::string& what) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(endpoint.address.c_str());
  if (ImGui::Selectable(endpoint.address.c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
    ctx.app.open_request = {endpoint.address, endpoint.key_file, false};
  item_tip("%s", what.c_str());
  ImGui::PopID();
  ImGui::TableNextColumn();
  cut_line(ctx.canvas, what, ctx.colors().muted);
}

/// A table with a `title` header and the rows added by `rows`.
template <typename Rows>
void list(const char* id, const char* title, Rows rows) {
  if (!ImGui::BeginTable(id, 2, ImGuiTableFlags_SizingStretchProp)) return;
  ImGui::TableSetupColumn(title, 0, 1);
  ImGui::TableSetupColumn("", 0, 1.4F);
  ImGui::TableHeadersRow();
  rows();
  ImGui::EndTable();
}

}  // namespace

void Workspace::start_page(Context& ctx, const Rect& room) {
  const Palette& c = ctx.colors();
  Rect page = room;
  status_line(ctx, page.take_bottom(24));
  const float width = std::min(kPageWidth, page.w - 48);
  const Rect column{page.x + (page.w - width) / 2, page.y + std::max(16.0F, page.h * 0.12F), width,
                    page.h - std::max(16.0F, page.h * 0.12F) - 8};
  placed_.push_back({"start_page", column});
  ImGui::SetCursorScreenPos({column.x, column.y});
  const FontScope body(ctx.canvas.fonts(), Font::body);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {10, 8});
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {12, 6});
  if (ImGui::BeginChild("##start page", {column.w, column.h})) {
    {
      const FontScope title(ctx.canvas.fonts(), Font::title);
      ImGui::TextUnformatted("Shardscope");
    }
    ImGui::PushStyleColor(ImGuiCol_Text, ink(mix(c.muted, c.text, 0.6F)));
    ImGui::TextWrapped(
        "Shows what ZeRO does while it does it: which rank holds which parameters, what waits for what, and "
        "where memory and time go. It reads recordings of training runs (*.zscope) and connects to live "
        "runs, which can be paused and stepped.");
    ImGui::PopStyleColor();
    ImGui::Dummy({0, 6});
    ways_to_open(ctx);
    ImGui::Dummy({0, 10});
    if (const std::vector<LocalRun>& here = local_.at(ctx.seconds); !here.empty()) {
      list("##here", "Runs on this machine", [&] {
        for (const LocalRun& run : here) endpoint_row(ctx, {run.endpoint, {}}, run.command);
      });
      ImGui::Dummy({0, 6});
    }
    if (recent_.files.empty() && recent_.endpoints.empty()) {
      ImGui::TextDisabled("No recent files. To make a recording:");
      const FontScope mono(ctx.canvas.fonts(), Font::mono_small);
      ImGui::TextUnformatted("shardscope run --config ds.json --ranks 4 --record run.zscope");
      ImGui::TextUnformatted("shardscope attach --record run.zscope -- torchrun --nproc-per-node 4 train.py");
    } else {
      list("##recent", "Recent", [&] {
        for (const std::string& file : recent_.files) recent_file(ctx, file);
        for (const Endpoint& endpoint : recent_.endpoints)
          endpoint_row(ctx, endpoint, endpoint.key_file.empty() ? "a run" : "key " + endpoint.key_file);
      });
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
}

/// The last notice, for example why a file could not be opened.
void Workspace::status_line(Context& ctx, Rect rect) const {
  const Palette& c = ctx.colors();
  ctx.canvas.fill(rect, c.panel);
  ctx.canvas.horizontal(rect.x, rect.y, rect.w, c.line);
  ctx.canvas.text_in(rect.inset(12, 0), ctx.ui.notice,
                     ctx.ui.notice_is_trouble ? c.of(Meaning::trouble) : c.text, Font::small);
}

}  // namespace shardscope::gui
