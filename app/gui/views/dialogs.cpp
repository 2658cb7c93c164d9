#include "app/gui/views/dialogs.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/places.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {
namespace {

const char* title_of(Dialog dialog) {
  switch (dialog) {
    case Dialog::none:
      break;
    case Dialog::palette:
      return "##palette";
    case Dialog::go_to:
      return "Go to";
    case Dialog::open_recording:
      return "Open a recording";
    case Dialog::open_second:
      return "Compare with a recording";
    case Dialog::connect:
      return "Connect to a run";
    case Dialog::connect_second:
      return "Compare with a live run";
    case Dialog::save_layout:
      return "Save the layout";
    case Dialog::export_report:
      return "Export the report";
    case Dialog::export_csv:
      return "Export tables";
    case Dialog::export_chrome:
    case Dialog::export_perfetto:
      return "Export a trace";
    case Dialog::export_sqlite:
      return "Export a database";
    case Dialog::export_kineto:
      return "Export traces";
    case Dialog::record_copy:
      return "Record a copy";
    case Dialog::save_table:
      return "Save the table";
    case Dialog::save_picture:
      return "Save a picture";
    case Dialog::note:
      return "Note";
    case Dialog::about:
      return "About Shardscope";
  }
  return "##none";
}

float width_of(Dialog dialog) {
  return dialog == Dialog::open_recording || dialog == Dialog::open_second || dialog == Dialog::palette
             ? 640.0F
             : 480.0F;
}

}  // namespace

void Dialogs::close(Context& ctx) {
  ctx.ui.dialog = Dialog::none;
  ImGui::CloseCurrentPopup();
}

bool Dialogs::confirm(Context& ctx, const char* what, bool enabled) {
  const Palette& c = ctx.colors();
  ImGui::Dummy({0, 2});
  ImGui::PushStyleColor(ImGuiCol_Button, ink(c.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ink(mix(c.accent, c.text, 0.2F)));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, ink(mix(c.accent, c.text, 0.35F)));
  ImGui::PushStyleColor(ImGuiCol_Text, ink(c.on_fill));
  ImGui::BeginDisabled(!enabled);
  const bool done = ImGui::Button(what);
  ImGui::EndDisabled();
  ImGui::PopStyleColor(4);
  ImGui::SameLine();
  if (ImGui::Button("Cancel")) close(ctx);
  return done;
}

void Dialogs::draw(Context& ctx, const Parts& parts) {
  if (std::exchange(ctx.ui.cancel_export, false)) job_.cancel();
  if (std::exchange(ctx.ui.stop_copy, false)) copy_.stop();
  const Dialog dialog = ctx.ui.dialog;
  if (dialog == Dialog::none) return;
  const char* const title = title_of(dialog);
  if (ctx.ui.dialog_opened) {
    text_.clear();
    problem_.clear();
    searched_ = "\n";  // differs from any input
    picked_.clear();
    files_ = {};
    chosen_ = 0;
    part_ = 0;
    with_other_ = true;
    picture_of_.clear();
    asked_about_.clear();
    ImGui::OpenPopup(title);
  }
  const float width = std::min(width_of(dialog), ctx.window.w - 32);
  ImGui::SetNextWindowPos({ctx.window.x + (ctx.window.w - width) / 2, ctx.window.y + ctx.window.h * 0.12F},
                          ImGuiCond_Appearing);
  ImGui::SetNextWindowSizeConstraints({width, 0}, {width, ctx.window.h * 0.8F});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {16, 14});
  const Palette& c = ctx.colors();
  ImGui::PushStyleColor(ImGuiCol_Button,
                        ink(mix(c.raised, c.text, 0.10F)));  // a dialog has the colour of buttons
  const FontScope body(ctx.canvas.fonts(), Font::body);
  ImGuiWindowFlags flags = ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings;
  if (dialog == Dialog::palette) flags |= ImGuiWindowFlags_NoTitleBar;
  bool open = true;
  if (ImGui::BeginPopupModal(title, dialog == Dialog::palette ? nullptr : &open, flags)) {
    switch (dialog) {
      case Dialog::none:
        break;
      case Dialog::palette:
        palette(ctx, parts);
        break;
      case Dialog::go_to:
        go_to(ctx);
        break;
      case Dialog::open_recording:
        browser(ctx, parts, false);
        break;
      case Dialog::open_second:
        browser(ctx, parts, true);
        break;
      case Dialog::connect:
        connect(ctx, parts, false);
        break;
      case Dialog::connect_second:
        connect(ctx, parts, true);
        break;
      case Dialog::save_layout:
        save_layout(ctx, parts);
        break;
      case Dialog::export_report:
        export_to(ctx, ExportFormat::report);
        break;
      case Dialog::export_csv:
        export_to(ctx, ExportFormat::csv);
        break;
      case Dialog::export_chrome:
        export_to(ctx, ExportFormat::chrome);
        break;
      case Dialog::export_perfetto:
        export_to(ctx, ExportFormat::perfetto);
        break;
      case Dialog::export_sqlite:
        export_to(ctx, ExportFormat::sqlite);
        break;
      case Dialog::export_kineto:
        export_to(ctx, ExportFormat::kineto);
        break;
      case Dialog::record_copy:
        record_copy(ctx);
        break;
      case Dialog::save_table:
        save_table(ctx);
        break;
      case Dialog::save_picture:
        save_picture(ctx, parts);
        break;
      case Dialog::note:
        note(ctx);
        break;
      case Dialog::about:
        about(ctx);
        break;
    }
    // The new height takes effect only in the next frame.
    if (std::exchange(height_, ImGui::GetCursorPosY()) != ImGui::GetCursorPosY()) ctx.moving = true;
    if (ctx.ui.dialog == dialog) ctx.ui.dialog_opened = false;  // unless another dialog was opened
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) close(ctx);
    ImGui::EndPopup();
  } else {
    ctx.ui.dialog = Dialog::none;
  }
  if (!open) ctx.ui.dialog = Dialog::none;
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

void Dialogs::go_to(Context& ctx) {
  ImGui::TextUnformatted("A step (12), a time (1.25 s, 830 ms), a rank (rank 3), or a copied link");
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered =
      text_field("##place", "step, time, rank or link", text_, ImGuiInputTextFlags_EnterReturnsTrue);
  if (!problem_.empty()) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextColored(ink(ctx.colors().of(Meaning::trouble)), "%s", problem_.c_str());
    ImGui::PopTextWrapPos();
  }
  if (confirm(ctx, "Go") || entered) {
    problem_ = go_to_text(ctx.app, text_);
    if (problem_.empty()) close(ctx);
  }
}

void Dialogs::save_layout(Context& ctx, const Parts& parts) {
  ImGui::TextUnformatted("A name for the panels as they are now");
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered = text_field("##name", "name", text_, ImGuiInputTextFlags_EnterReturnsTrue);
  if (!problem_.empty()) ImGui::TextColored(ink(ctx.colors().of(Meaning::trouble)), "%s", problem_.c_str());
  if (confirm(ctx, "Save") || entered) {
    problem_ = parts.docks.save_as(ctx.app.layout_name, text_);
    if (problem_.empty()) {
      ctx.app.own_layouts = parts.docks.own_names();
      ctx.app.set_layout(text_);
      close(ctx);
    }
  }
}

void Dialogs::about(Context& ctx) {
  ImGui::TextUnformatted("Shardscope shows what ZeRO does while it does it.");
  if (!ctx.app.program_facts.empty()) ImGui::TextUnformatted(ctx.app.program_facts.c_str());
  ImGui::TextDisabled("Dear ImGui %s", IMGUI_VERSION);
  if (ImGui::Button("Close")) close(ctx);
}

}  // namespace shardscope::gui
