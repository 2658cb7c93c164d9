#include "app/gui/views/workspace.h"

#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <utility>

#include "app/gui/model/linked_axes.h"

namespace shardscope::gui {
namespace {

constexpr float kTopBar = 40;
constexpr float kStepRuler = 48;
constexpr float kStatusBar = 24;
constexpr ImGuiWindowFlags kHost = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoBackground |
                                   ImGuiWindowFlags_NoScrollWithMouse;

bool is_popup_open() {
  return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

}  // namespace

void Workspace::draw(Context& ctx, std::string_view only) {
  AppState& app = ctx.app;
  placed_.clear();
  ui_.toolbar.clear();
  app.place_once();
  app.advance();
  app.time.glides = app.run->in_window();  // a picture is of where a glide ends
  if (app.time.advance(ctx.seconds)) ctx.moving = true;
  app.hover_ns = std::exchange(app.hover_next_ns, std::nullopt);
  app.own_layouts = docks_.own_names();
  app.notes.show(*app.run);
  app.find.wanted = std::exchange(app.find.wanted_next, false);
  // A picture needs complete results; a window searches between frames.
  if (!app.run->in_window()) app.find.advance(app, std::chrono::hours(1));
  for (const auto& view : registry_.all()) {
    // Apart from drawing: also hidden panels are updated.
    const std::string name = ctx.ui.times != nullptr ? std::string(view->name()) + ", update" : std::string();
    const FrameTimes::Part part(ctx.ui.times, name);
    view->update(ctx);
  }
  if (app.breaks.playing() || app.breaks.searching()) ctx.moving = true;
  if (std::exchange(kept_.read, false)) {
    if (!app.theme_given) app.theme = kept_.theme;
    app.text_scale = kept_.text_scale;
    app.timeline.view = kept_.view;
    static_cast<RowChoices&>(app.timeline) = kept_.rows;
    app.plot_scales = kept_.plots;
    app.own_colours = kept_.colours;
    if (app.breaks.list().empty())
      for (const std::string& line : kept_.breaks) app.breaks.take_line(line);
    breaks_revision_ = app.breaks.revision();
  }
  if (breaks_revision_ != app.breaks.revision()) {
    breaks_revision_ = app.breaks.revision();
    kept_.breaks = app.breaks.lines();
    ImGui::MarkIniSettingsDirty();
  }
  if (orders_.follow(app)) ImGui::MarkIniSettingsDirty();
  const bool all = only.empty() || only == "workspace";
  const std::optional<StepsShown> linked = linked_steps(app);
  if (linked) ui_.steps = {linked->begin, linked->end, false};
  if (all) keys(ctx);
  ui_.keyboard_at.clear();
  walks_ = std::exchange(ui_.in_key_area, false);
  ImGui::SetNextWindowViewport(ImGui::GetMainViewport()->ID);
  ImGui::SetNextWindowPos({ctx.window.x, ctx.window.y});
  ImGui::SetNextWindowSize({ctx.window.w, ctx.window.h});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  // The menu bar is part of the top bar and has its height.
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {8, (kTopBar - line_height(Font::body)) / 2});
  ImGui::Begin(kHostWindow, nullptr, all ? kHost | ImGuiWindowFlags_MenuBar : kHost);
  if (ui_.host_chosen && ImGui::IsWindowFocused() && ImGui::GetCurrentContext()->NavId == 0)
    ImGui::NavInitWindow(ImGui::GetCurrentWindow(), false);
  ctx.enter_window();
  Rect room = ctx.window;
  ctx.canvas.fill(room, ctx.colors().base);
  ui_.recent = &recent_;
  const bool start = all && app.start_page;
  const Rect top = all ? room.take_top(kTopBar) : Rect{};
  if (all && ImGui::BeginMenuBar()) {
    const FrameTimes::Part part(ctx.ui.times, "top bar");
    top_bar(ctx, top);
    ImGui::EndMenuBar();
  }
  ImGui::PopStyleVar(2);
  if (start) {
    start_page(ctx, room);
  } else if (all) {
    bars(ctx, room);
    const FrameTimes::Part part(ctx.ui.times, "docking");
    docks_.submit(app.layout_name, room);
  } else if (View* const view = registry_.find(only)) {
    const FrameTimes::Part part(ctx.ui.times, view->name());
    panel(ctx, *view, view->choices(ctx.app), room, true);
  }
  ImGui::End();
  if (all && !start) {
    show_requested_panel(ctx);
    panels(ctx);
  }
  if (linked) follow_plots(ctx, {linked->begin, linked->end, false});
  placed_.push_back({"keyboard", {}, {ui_.keyboard_at}});
  placed_.push_back({"status", {}, {ui_.notice}});
  ui_.pressed.reset();  // its panel is no longer drawn
  above(ctx);
  orders_.note_place(app, ctx.seconds);
  if (app.theme != kept_.theme || app.text_scale != kept_.text_scale || app.timeline.view != kept_.view ||
      app.timeline != kept_.rows || app.plot_scales != kept_.plots || app.own_colours != kept_.colours) {
    kept_.theme = app.theme;
    kept_.text_scale = app.text_scale;
    kept_.view = app.timeline.view;
    kept_.rows = app.timeline;
    kept_.plots = app.plot_scales;
    kept_.colours = app.own_colours;
    ImGui::MarkIniSettingsDirty();
  }
  // Release the drag of something that is no longer drawn.
  if (std::ranges::none_of(ctx.pointer.down, std::identity{})) ctx.ui.captured = nullptr;
}

/// Shows in the timeline what was zoomed to in a plot of values per step. `before`: the steps shown before.
void Workspace::follow_plots(Context& ctx, const StepAxis& before) {
  const StepAxis& now = ui_.steps;
  if (now.all)
    ctx.app.fit();
  else if (now.begin != before.begin || now.end != before.end)
    show_steps(ctx.app, {now.begin, now.end});
  else
    return;
  ctx.moving = true;
}

/// What lies around the panels: warnings, the step ruler, the status bar. Takes its height from `room`.
void Workspace::bars(Context& ctx, Rect& room) {
  {
    const FrameTimes::Part part(ctx.ui.times, "strips");
    banner(ctx, room);
    notice_strip(ctx, room);
    copy_strip(ctx, room);
  }
  const Rect ruler = room.take_top(kStepRuler);
  placed_.push_back({"steps", ruler, {}, false, ImGui::IsWindowFocused()});
  {
    const FrameTimes::Part part(ctx.ui.times, "step ruler");
    step_ruler(ctx, ruler);
  }
  const FrameTimes::Part part(ctx.ui.times, "status bar");
  status_bar(ctx, room.take_bottom(kStatusBar));
  finding_strip(ctx, room);
}

/// Draws above the panels: sheet of keys, menus, dialogs, tooltips, the frame of a paused
/// run.
void Workspace::above(Context& ctx) {
  draw_help(ctx);
  sample(ctx);
  tour(ctx);
  ctx.draw_overlay();
  dialogs_.draw(ctx, {registry_, docks_, recent_});
  if (ctx.ui.dialog != Dialog::none) placed_.push_back({"dialog", {}, {dialogs_.text()}});
  ctx.ui.exporting = dialogs_.exporting();
  // Once more after it has ended, for the next frame to draw the result.
  const bool copied = std::exchange(ctx.ui.copying, dialogs_.copy().state().running);
  if (ctx.ui.exporting || ctx.ui.copying || copied) ctx.moving = true;
  ctx.canvas.draw_on(ImGui::GetForegroundDrawList());
  if (ctx.app.paused()) ctx.canvas.outline(ctx.window, ctx.colors().accent, 1, 3);
  ctx.draw_tip();
  had_popup_ = is_popup_open();
  ctx.ui.key_tip.follow(ctx);
  if (ctx.ui.key_tip.shown()) placed_.push_back({"tip", {}, {ctx.tip_line()}});
}

void Workspace::keys(Context& ctx) {
  // An open menu or dialog has the keyboard, also the Escape by which ImGui has closed it at the begin of
  // this frame.
  if (std::exchange(had_popup_, false) || is_popup_open()) return;
  const ImGuiIO& io = ImGui::GetIO();
  run_pressed(ctx, io.WantTextInput, io.NavVisible);
  if (io.WantTextInput) return;
  const std::vector<std::string> layouts = docks_.names();
  for (std::size_t i = 0; i < std::min<std::size_t>(layouts.size(), 9); ++i) {
    if (ctx.presses('1' + static_cast<int>(i)) > 0) ctx.app.set_layout(layouts[i]);
  }
}

void Workspace::opened(const AppState::OpenRequest& what) {
  if (what.source.find("://") != std::string::npos) {
    recent_.connected({what.source, what.key_file});
  } else {
    std::error_code ignored;
    const std::filesystem::path whole = std::filesystem::absolute(what.source, ignored);
    recent_.opened(ignored ? what.source : whole.string());
  }
  ImGui::MarkIniSettingsDirty();
}

void Workspace::keep_in_settings() {
  docks_.keep_in_settings();
  ImGuiSettingsHandler handler;
  handler.UserData = this;
  handler.TypeName = "Shardscope";
  handler.TypeHash = ImHashStr("Shardscope");
  handler.ReadOpenFn = [](ImGuiContext*, ImGuiSettingsHandler* own, const char*) -> void* {
    auto& workspace = *static_cast<Workspace*>(own->UserData);
    workspace.recent_ = {};
    workspace.kept_.read = true;
    workspace.kept_.breaks.clear();
    workspace.kept_.plots = {};
    workspace.kept_.colours = {};
    workspace.orders_ = {};
    return &workspace;
  };
  handler.ReadLineFn = [](ImGuiContext*, ImGuiSettingsHandler*, void* entry, const char* line) {
    auto& workspace = *static_cast<Workspace*>(entry);
    workspace.recent_.take_line(line);
    workspace.orders_.take_line(line);
    gui::take_line(workspace.kept_.view, line);
    gui::take_line(workspace.kept_.rows, line);
    workspace.kept_.plots.take_line(line);
    workspace.kept_.colours.take_line(line);
    const std::string_view text = line;
    if (text.starts_with("Break=")) workspace.kept_.breaks.emplace_back(text);
    constexpr std::string_view kTheme = "Theme=";
    if (text.starts_with(kTheme))
      workspace.kept_.theme = theme_of(text.substr(kTheme.size())).value_or(ThemeKind::dark);
    float scale = 0;
    if (std::sscanf(line, "TextScale=%f", &scale) == 1 && scale >= 0.7F && scale <= 3)
      workspace.kept_.text_scale = scale;
  };
  handler.WriteAllFn = [](ImGuiContext*, ImGuiSettingsHandler* own, ImGuiTextBuffer* out) {
    const auto& workspace = *static_cast<Workspace*>(own->UserData);
    out->append("[Shardscope][Window]\n");
    out->appendf("Theme=%s\n", name_of(workspace.kept_.theme));
    out->appendf("TextScale=%.2f\n", static_cast<double>(workspace.kept_.text_scale));
    for (const std::string& line : lines_of(workspace.kept_.view)) out->appendf("%s\n", line.c_str());
    for (const std::string& line : lines_of(workspace.kept_.rows)) out->appendf("%s\n", line.c_str());
    for (const std::string& line : workspace.kept_.colours.lines()) out->appendf("%s\n", line.c_str());
    for (const std::string& line : workspace.kept_.plots.lines()) out->appendf("%s\n", line.c_str());
    for (const std::string& line : workspace.recent_.lines()) out->appendf("%s\n", line.c_str());
    for (const std::string& line : workspace.orders_.lines()) out->appendf("%s\n", line.c_str());
    for (const std::string& line : workspace.kept_.breaks) out->appendf("%s\n", line.c_str());
    out->append("\n");
  };
  ImGui::AddSettingsHandler(&handler);
}

}  // namespace shardscope::gui
