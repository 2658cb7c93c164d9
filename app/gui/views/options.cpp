// Options: classes hidden in the timeline, heights, target duration of a step, steps in view while following,
// colours, text size. Saved in the settings.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "app/gui/model/step_bars.h"
#include "app/gui/model/view_options.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {
namespace {

class OptionsView final : public View {
 public:
  std::string_view name() const override { return "options"; }
  std::string_view title() const override { return "Options"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  static void items(Context& ctx);
  static void sizes(Context& ctx);
  static void colours(Context& ctx);
  void steps(Context& ctx);

  StepBars bars_;  ///< for the median
};

void OptionsView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const bool changed = app.timeline.view != ViewOptions{} || app.text_scale != 1.0F;
  if (ctx.button_right(room, "Reset", changed, Context::Look::plain,
                       "Shows everything, removes the step time target, resets heights and text size")) {
    app.timeline.view = {};
    app.text_scale = 1;
  }
}

void OptionsView::items(Context& ctx) {
  ViewOptions& view = ctx.app.timeline.view;
  ImGui::SeparatorText("Shown in the timeline");
  for (int i = 0; i < kItemClasses; ++i) {
    const auto what = static_cast<ItemClass>(i);
    bool shown = !view.hides(what);
    if (ImGui::Checkbox(word(what), &shown)) view.set(what, shown);
    static constexpr const char* kTips[kItemClasses] = {
        "Spans of modules in the compute lane",
        "The lane of waits, and waits in the compute lane",
        "The lanes of gathers and reductions",
        "Spans of kernels in the compute lane",
        "The lanes of the GPU's streams",
        "Underlines of found spans, arrows, and marks of late or early gathers",
        "Flags of notes and bookmarks",
        "The lanes of copies, NVMe and the host's workers",
        "Spans that the program names itself (shardscope_span_begin)"};
    ImGui::SetItemTooltip("%s", kTips[i]);
  }
  const std::string hidden = hidden_text(view);
  if (!hidden.empty()) ImGui::TextColored(ink(ctx.colors().of(Meaning::reduce)), "%s", hidden.c_str());
}

void OptionsView::sizes(Context& ctx) {
  AppState& app = ctx.app;
  ImGui::SeparatorText("Sizes");
  const auto height = [](const char* label, float& value, float lowest, float highest) {
    int pixels = static_cast<int>(value);
    ImGui::SetNextItemWidth(160);
    if (ImGui::SliderInt(label, &pixels, static_cast<int>(lowest), static_cast<int>(highest), "%d px",
                         ImGuiSliderFlags_AlwaysClamp))
      value = static_cast<float>(pixels);
  };
  ViewOptions& view = app.timeline.view;
  height("height of lanes", view.lane_height, ViewOptions::kLowest, ViewOptions::kHighest);
  height("height of curves", view.curve_height, ViewOptions::kLowestCurve, ViewOptions::kHighestCurve);
  // Buttons: a slider would change its own size under the pointer.
  if (ImGui::Button("-")) app.text_scale = std::clamp(app.text_scale - 0.1F, 0.7F, 3.0F);
  ImGui::SameLine(0, 4);
  if (ImGui::Button("+")) app.text_scale = std::clamp(app.text_scale + 0.1F, 0.7F, 3.0F);
  ImGui::SameLine();
  ImGui::Text("size of text and controls: %.0f %%", static_cast<double>(app.text_scale) * 100);
}

void OptionsView::steps(Context& ctx) {
  ViewOptions& view = ctx.app.timeline.view;
  ImGui::SeparatorText("Steps");
  bars_.of(*ctx.app.run, 1, view.step_target_ns);
  double ms = static_cast<double>(view.step_target_ns) / 1e6;
  ImGui::SetNextItemWidth(160);
  if (ImGui::InputDouble("step time target", &ms, 0, 0, ms > 0 ? "%.6g ms" : "none",
                         ImGuiInputTextFlags_CharsDecimal))
    view.step_target_ns = ms > 0 && ms < 1e12 ? std::llround(ms * 1e6) : 0;
  ImGui::SetItemTooltip(
      "Without pauses, in milliseconds; 0: none. The step ruler has a line at the target, and the time over "
      "target is red");
  const std::int64_t median = bars_.median_ns();
  ImGui::BeginDisabled(median <= 0);
  if (ImGui::Button("Median of this run")) view.step_target_ns = median;
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(view.step_target_ns == 0);
  if (ImGui::Button("None")) view.step_target_ns = 0;
  ImGui::EndDisabled();
  if (view.step_target_ns > 0) {
    ImGui::SameLine();
    ImGui::Text("%zu of %zu steps are over target", bars_.beyond(), ctx.app.store().steps().size());
  }
  int followed = static_cast<int>(view.followed_steps);
  ImGui::SetNextItemWidth(160);
  if (ImGui::InputInt("newest steps in view while following", &followed))
    ctx.app.timeline.view.followed_steps = static_cast<std::uint32_t>(
        std::clamp(followed, 0, static_cast<int>(ViewOptions::kMostFollowedSteps)));
  ImGui::SetItemTooltip(
      "Of a live run that the timeline follows; 0: the range keeps its length. Zooming overrides it until "
      "following is resumed");
}

void OptionsView::colours(Context& ctx) {
  AppState& app = ctx.app;
  ImGui::SeparatorText("Colours");
  if (ImGui::RadioButton("dark", is_dark(app.theme)) && !is_dark(app.theme))
    app.theme = with_other_ground(app.theme);
  ImGui::SameLine();
  if (ImGui::RadioButton("light", !is_dark(app.theme)) && is_dark(app.theme))
    app.theme = with_other_ground(app.theme);
  bool for_colour_blind = is_for_colour_blind(app.theme);
  if (ImGui::Checkbox("for colour blindness", &for_colour_blind)) app.theme = with_other_colours(app.theme);
  ImGui::PushTextWrapPos(0);
  ImGui::TextDisabled(
      "For colour blindness: lanes, states, severities, runs and up to 16 owners are distinguishable with "
      "protanopia, deuteranopia and tritanopia. Waits are hatched in every theme, so that they do not depend "
      "on colour.");
  ImGui::TextDisabled("Saved in the settings file.");
  ImGui::PopTextWrapPos();
}

void OptionsView::draw(Context& ctx, Rect room) {
  const FontScope body(ctx.canvas.fonts(), Font::body);
  ImGui::SetCursorScreenPos({room.x + 12, room.y});
  if (ImGui::BeginChild("##options", {room.w - 20, room.h - 6}, ImGuiChildFlags_NavFlattened)) {
    items(ctx);
    sizes(ctx);
    steps(ctx);
    colours(ctx);
  }
  ImGui::EndChild();
}

}  // namespace

std::unique_ptr<View> make_options_view() { return std::make_unique<OptionsView>(); }

}  // namespace shardscope::gui
