#include "app/gui/platform/frame.h"

#include <imgui_internal.h>
#include <implot.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "app/gui/platform/font_files.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {
namespace {

constexpr const char* kText = "Inter";
constexpr const char* kMono = "JetBrains Mono";

/// Adds letters that the window's fonts lack, as in notes, paths and names of modules, to the font loaded
/// last. Glyphs are made when they are first drawn. `files`: one read of each file serves every size.
void add_other_scripts(std::map<std::string, std::vector<char>>& files, float pixels) {
  constexpr std::tuple<const char*, char32_t> kScripts[] = {
      {"zh-cn", U'\u4E2D'}, {"ja", U'\u3042'}, {"ko", U'\uAC00'}};
  std::set<std::pair<std::string, int>> added;
  for (const auto& [language, letter] : kScripts) {
    const FontFile file = find_font_of(language, letter);
    if (file.path.empty() || !added.emplace(file.path, file.index).second) continue;
    std::vector<char>& bytes = files[file.path];
    if (bytes.empty()) {
      std::ifstream in(file.path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (bytes.empty()) continue;
    ImFontConfig config;
    config.MergeMode = true;
    config.FontDataOwnedByAtlas = false;
    config.FontNo = static_cast<unsigned>(file.index);
    ImGui::GetIO().Fonts->AddFontFromMemoryTTF(bytes.data(), static_cast<int>(bytes.size()), pixels, &config);
  }
}

ImFont* load(const char* family, const char* weight, float pixels, std::string& problem) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  const FontFile file = find_font(family, weight);
  std::error_code ignored;
  ImFont* font = nullptr;
  // ImGui aborts on a missing file.
  if (std::filesystem::is_regular_file(file.path, ignored)) {
    ImFontConfig config;
    config.OversampleH = 2;
    config.OversampleV = 1;
    config.PixelSnapH = true;
    config.FontNo = static_cast<unsigned>(file.index);
    font = atlas.AddFontFromFileTTF(file.path.c_str(), pixels, &config);
  }
  if (font == nullptr || !file.exact)
    problem = std::string("font ") + family +
              " is missing; install fonts-inter and fonts-jetbrains-mono (another font is used)";
  if (font != nullptr) return font;
  ImFontConfig config;
  config.SizePixels = pixels;
  return atlas.AddFontDefault(&config);
}

}  // namespace

Frame::Frame() {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // set by the window; pictures write none
  io.LogFilename = nullptr;
  io.ConfigInputTextCursorBlink =
      false;  // frames are drawn only when something happens: blinking would stop at a random phase
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  workspace_.keep_in_settings();
  load_fonts();
}

Frame::~Frame() {
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
}

void Frame::load_fonts() {
  struct Face {
    Font font;
    const char *family, *weight;
  };
  for (const Face& face : {Face{Font::small, kText, "Regular"}, Face{Font::body, kText, "Regular"},
                           Face{Font::strong, kText, "SemiBold"}, Face{Font::title, kText, "SemiBold"},
                           Face{Font::mono, kMono, "Regular"}, Face{Font::mono_small, kMono, "Regular"},
                           Face{Font::mono_title, kMono, "Regular"}}) {
    fonts_.at[static_cast<std::size_t>(face.font)] =
        load(face.family, face.weight, line_height(face.font), font_problem_);
    add_other_scripts(font_bytes_, line_height(face.font));
  }
  ImGui::GetIO().FontDefault = fonts_.of(Font::strong);
  ImGui::GetStyle().FontSizeBase = line_height(Font::strong);
}

/// ImGui goes from a panel to the items above it, such as its tab, when Alt is released: here to the menus.
void Frame::enter_menus() {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  ImGuiWindow* const host = ImGui::FindWindowByName(Workspace::kHostWindow);
  if (host == nullptr || g.NavWindow == nullptr) return;
  if (g.NavLayer != ImGuiNavLayer_Menu || g.OpenPopupStack.Size > 0) return;
  workspace_.ui().host_chosen = true;
  if (g.NavWindow == host) return;
  ImGui::FocusWindow(host);
  g.NavLayer = ImGuiNavLayer_Menu;
  ImGui::NavInitWindow(host, false);
  ImGui::SetNavCursorVisible(true);
}

/// Gives the keyboard from the menus back to the last panel. False: it was not there.
bool Frame::leave_menus() {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  if (g.NavLayer != ImGuiNavLayer_Menu || g.NavWindow == nullptr) return false;
  g.NavLayer = ImGuiNavLayer_Main;
  workspace_.ui().host_chosen = false;
  ImGui::FocusTopMostWindowUnderOne(nullptr, g.NavWindow, nullptr, ImGuiFocusRequestFlags_None);
  return true;
}

void Frame::choose_navigation(bool several) {
  ImGuiIO& io = ImGui::GetIO();
  constexpr int kTab = 258, kF4 = 293, kF6 = 295, kLeftAlt = 342, kRightAlt = 346;
  // From Tab, F6 or Alt until the pointer is used or Escape is pressed: ImGui applies a change of navigation
  // in the next frame.
  for (const KeyPress& press : keys_) {
    if (press.code == kTab || press.code == kF4 || press.code == kF6 || press.code == kLeftAlt ||
        press.code == kRightAlt)
      by_keyboard_ = true;
    else if (press.code == key::kEscape && !workspace_.ui().key_tip.shown() &&
             ImGui::GetCurrentContext()->OpenPopupStack.Size == 0)
      by_keyboard_ = leave_menus();
  }
  if (several) enter_menus();
  bool& host_chosen = workspace_.ui().host_chosen;
  for (const ImGuiInputEvent& event : ImGui::GetCurrentContext()->InputEventsQueue) {
    if (event.Type == ImGuiInputEventType_MouseButton) by_keyboard_ = host_chosen = false;
  }
  // Before a click in a panel ImGui's cursor is in no window or in the host window, where a single panel is.
  ImGuiWindow* const at = ImGui::GetCurrentContext()->NavWindow;
  const bool in_host = at != nullptr && std::string_view(at->Name) == Workspace::kHostWindow;
  if (by_keyboard_ && several && (at == nullptr || (in_host && !host_chosen)))
    ImGui::FocusTopMostWindowUnderOne(nullptr, at, nullptr, ImGuiFocusRequestFlags_None);
  const bool wanted = by_keyboard_ || io.WantTextInput || io.KeyAlt || io.KeyCtrl ||
                      workspace_.ui().dialog != Dialog::none ||
                      ImGui::GetCurrentContext()->OpenPopupStack.Size > 0;
  if (wanted)
    io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  else
    io.ConfigFlags &= ~ImGuiConfigFlags_NavEnableKeyboard;
}

ImDrawData* Frame::build(AppState& app, std::string_view panel, double seconds) {
  const AppState::Turn turn = app.turn();
  const double began = thread_cpu_ms();
  ImGuiIO& io = ImGui::GetIO();
  const Palette colors = app.own_colours.applied(app.theme);
  apply_theme(colors);
  presses_.release();
  workspace_.ui().key_tip.put_pointer();
  presses_.hold();
  choose_navigation(panel.empty() || panel == "workspace");
  {
    const FrameTimes::Part part(workspace_.ui().times, "ImGui: new frame");
    ImGui::NewFrame();
  }
  // Rasterize glyphs at the screen's density; ImGui does this only for its current
  // font.
  for (ImFont* font : fonts_.at) font->CurrentRasterizerDensity = io.DisplayFramebufferScale.x;
  Pointer pointer;
  pointer.x = io.MousePos.x;
  pointer.y = io.MousePos.y;
  pointer.dx = io.MouseDelta.x;
  pointer.dy = io.MouseDelta.y;
  pointer.wheel = io.MouseWheel;
  pointer.wheel_sideways = io.MouseWheelH;
  pointer.shift = io.KeyShift;
  pointer.ctrl = io.KeyCtrl;
  pointer.alt = io.KeyAlt;
  for (int button = 0; button < 3; ++button) {
    pointer.pressed[button] = ImGui::IsMouseClicked(button);
    pointer.down[button] = ImGui::IsMouseDown(button);
    pointer.released[button] = ImGui::IsMouseReleased(button);
  }
  pointer.double_click = ImGui::IsMouseDoubleClicked(0);
  took_input_ = !keys_.empty() || !io.InputQueueCharacters.empty() || pointer.dx != 0 || pointer.dy != 0 ||
                pointer.wheel != 0 || pointer.wheel_sideways != 0 ||
                std::ranges::count(pointer.pressed, true) > 0 ||
                std::ranges::count(pointer.released, true) > 0;
  Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, app.theme, colors);
  const ImGuiViewport& main = *ImGui::GetMainViewport();
  Context ctx(app, workspace_.ui(), canvas, pointer, seconds,
              {main.Pos.x, main.Pos.y, main.Size.x, main.Size.y});
  ctx.keys = keys_;
  app.run->begin_frame();
  if (app.other) app.other->begin_frame();
  const std::vector<PlacedForDump> placed = workspace_.placed();
  workspace_.draw(ctx, panel);
  // After a move a window is complete one frame later, and the tabs beside it two.
  if (placed != workspace_.placed()) {
    unsettled_ = 2;
  } else if (unsettled_ > 0) {
    --unsettled_;
  }
  took_input_ |= unsettled_ > 0;
  // Panels draw the time under the pointer one frame after hover_next_ns is set; it is not set while a button
  // is held.
  took_input_ |= app.hover_ns != app.hover_next_ns;
  if (app.other) app.other->end_frame();
  app.run->end_frame();
  keys_.clear();
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  // ImGui spreads a burst of events over several frames: draw until its queue is empty.
  took_input_ |= !imgui.InputEventsQueue.empty();
  const bool fading = imgui.DimBgRatio > 0 && imgui.DimBgRatio < 1;
  moving_ = ctx.moving || fading || presses_.holds();
  again_s_ = ctx.again_s;
  {
    const FrameTimes::Part part(workspace_.ui().times, "ImGui: draw lists");
    ImGui::Render();
  }
  ++count_;
  times_.add(static_cast<float>(thread_cpu_ms() - began));
  return ImGui::GetDrawData();
}

}  // namespace shardscope::gui
