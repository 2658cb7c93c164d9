// Dialogs for the file and the range of a report, a trace, tables, a picture or a recording of a live
// run.
#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "app/gui/model/export_parts.h"
#include "app/gui/model/format.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {
namespace {

/// Path of the recording without its extension: prefix of export file names.
std::string stem_of(const Session& run) {
  if (!run.recorded() || run.source().empty()) return "shardscope";
  std::string text = run.source();
  if (text.ends_with(".zscope")) text.resize(text.size() - 7);
  return text;
}

}  // namespace

bool Dialogs::is_there() const {
  std::error_code ignored;
  const std::filesystem::path path(text_);
  return std::filesystem::is_directory(path, ignored) ? !std::filesystem::is_empty(path, ignored)
                                                      : std::filesystem::exists(path, ignored);
}

bool Dialogs::target_field(Context& ctx, const std::string& proposed) {
  if (ctx.ui.dialog_opened) {
    text_ = proposed;
    ImGui::SetKeyboardFocusHere();
  }
  ImGui::SetNextItemWidth(-1);
  const bool entered = text_field("##target", "file", text_, ImGuiInputTextFlags_EnterReturnsTrue);
  // Relative paths refer to the working directory.
  std::error_code ignored;
  if (!text_.empty() && std::filesystem::path(text_).is_relative()) {
    ImGui::PushTextWrapPos(0);  // wraps long paths
    ImGui::TextDisabled("in %s", std::filesystem::current_path(ignored).c_str());
    ImGui::PopTextWrapPos();
  }
  if (!text_.empty() && is_there()) {
    const bool folder = std::filesystem::is_directory(text_);
    ImGui::TextColored(ink(ctx.colors().warning), "%s",
                       folder ? "This folder is not empty: files of the same names will be replaced"
                              : "This file exists and will be replaced");
  }
  if (!problem_.empty()) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextColored(ink(ctx.colors().of(Meaning::trouble)), "%s", problem_.c_str());
    ImGui::PopTextWrapPos();
  }
  // The first Enter warns that the file exists, the second replaces it.
  if (!entered || text_.empty()) return false;
  if (!is_there() || asked_about_ == text_) return true;
  asked_about_ = text_;
  problem_ = "Press Enter again to replace it";
  ctx.moving = true;
  return false;
}

void Dialogs::export_to(Context& ctx, ExportFormat format) {
  AppState& app = ctx.app;
  const bool live = !app.run->recorded();
  if (live && !app.run->live()) {
    ImGui::TextUnformatted("This window is no longer connected to the run");
    if (ImGui::Button("Close")) close(ctx);
    return;
  }
  ImGui::Text("Write the %s to", word(format));
  const bool entered = target_field(ctx, stem_of(*app.run) + ending(format));
  if (format == ExportFormat::csv) ImGui::TextDisabled("a folder: one file per table");
  if (format == ExportFormat::kineto)
    ImGui::TextDisabled("a folder: one file per rank, as PyTorch's profiler writes");
  if (live) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled(
        "What the run's collector has until now, over a connection of its own. A recording of the run "
        "(run --record, record) has all of it.");
    ImGui::PopTextWrapPos();
  }
  // Times of the window are not those of the run as it is read anew.
  const std::vector<OfferedPart> parts = live ? std::vector<OfferedPart>{} : export_parts(app, format);
  part_ = std::min(part_, parts.empty() ? 0 : parts.size() - 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ImGui::BeginDisabled(!parts[i].possible);
    if (ImGui::RadioButton(parts[i].label.c_str(), part_ == i)) part_ = i;
    ImGui::EndDisabled();
  }
  const bool other = !live && app.other && app.other->recorded();
  if (format == ExportFormat::report && other) {
    ImGui::Checkbox("Compare A and B", &with_other_);
    item_tip("A: %s\nB: %s", app.run_a().source().c_str(), app.run_b()->source().c_str());
  }
  const bool busy = job_.state().running;
  if (busy) ImGui::TextDisabled("Another export is running");
  const bool possible = !busy && !text_.empty();
  if (confirm(ctx, is_there() ? "Replace" : "Export", possible) || (entered && possible)) {
    ExportJob::Order order{.format = format,
                           .recording = app.run->source(),
                           .target = text_,
                           .live = live,
                           .key_file = app.run->key_file()};
    if (!parts.empty() && parts[part_].possible) {
      order.range_ns = parts[part_].range_ns;
      order.steps = parts[part_].steps;
    }
    if (format == ExportFormat::report && other && with_other_) {
      order.recording = app.run_a().source();
      order.other = app.run_b()->source();
    }
    job_.start(std::move(order));
    close(ctx);
  }
}

void Dialogs::record_copy(Context& ctx) {
  AppState& app = ctx.app;
  ImGui::TextUnformatted("Record this run to");
  const bool entered = target_field(ctx, stem_of(*app.run) + ".zscope");
  ImGui::PushTextWrapPos(0);
  ImGui::TextDisabled(
      "From the earliest event that the collector still has, until you stop it, the run ends or this window "
      "closes. It uses a connection of its own, so it records all events whatever the window shows.");
  ImGui::PopTextWrapPos();
  if (!app.run->live()) ImGui::TextDisabled("This window is no longer connected to the run");
  const bool busy = copy_.state().running;
  if (busy) ImGui::TextDisabled("Another copy is being recorded");
  const bool possible = app.run->live() && !busy && !text_.empty();
  if (confirm(ctx, is_there() ? "Replace" : "Record", possible) || (entered && possible)) {
    CopyRecording::Order order{
        .endpoint = app.run->source(), .target = text_, .key_file = app.run->key_file()};
    if (app.store().event_count() > 0 && app.run->traffic().from_begin)
      order.zero_ns = app.store().origin_ns();
    copy_.start(std::move(order));
    close(ctx);
  }
}

void Dialogs::save_table(Context& ctx) {
  ImGui::TextUnformatted("Write the rows of the table (CSV) to");
  const bool entered = target_field(ctx, stem_of(*ctx.app.run) + "-table.csv");
  if (confirm(ctx, is_there() ? "Replace" : "Save", !text_.empty()) || entered) {
    try {
      write_whole(text_, ctx.ui.table_rows);
      ctx.ui.say("Saved " + text_);
      close(ctx);
    } catch (const std::exception& failed) {
      problem_ = failed.what();
    }
  }
}

void Dialogs::save_picture(Context& ctx, const Parts& parts) {
  ImGui::TextUnformatted("Write what is shown (PNG) to");
  const bool entered = target_field(ctx, stem_of(*ctx.app.run) + ".png");
  const auto title = [&](const std::string& name) {
    const View* const view = parts.views.find(name);
    return view == nullptr ? std::string("the whole window") : "the panel " + std::string(view->title());
  };
  ImGui::SetNextItemWidth(-1);
  if (ImGui::BeginCombo("##of", title(picture_of_).c_str())) {
    if (ImGui::Selectable(title({}).c_str(), picture_of_.empty())) picture_of_.clear();
    for (const std::string& name : parts.docks.shown(ctx.app.layout_name))
      if (ImGui::Selectable(title(name).c_str(), name == picture_of_)) picture_of_ = name;
    ImGui::EndCombo();
  }
  if (confirm(ctx, is_there() ? "Replace" : "Save", !text_.empty()) || entered) {
    ctx.ui.picture = UiState::Picture{text_, picture_of_};
    close(ctx);
  }
}

std::string Dialogs::export_line() const {
  const ExportJob::State state = job_.state();
  if (state.running) {
    const std::string share = state.share > 0 ? ", " + decimal(100 * state.share, 0) + " %" : "";
    return "Export: " + state.what + share + ", " + decimal(state.seconds, 1) + " s";
  }
  if (!state.done) return {};
  if (state.cancelled) return "The export was cancelled: " + state.target + " is unchanged";
  return state.problem.empty() ? "Exported " + state.target + " in " + decimal(state.seconds, 1) + " s"
                               : "Export failed: " + state.problem;
}

}  // namespace shardscope::gui
