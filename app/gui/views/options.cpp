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
  RunsOf runs() const override { return RunsOf::none; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  static void items(Context& ctx);
  static void sizes(Context& ctx);
  static void axes(Context& ctx);
  static void colours(Context& ctx);
  static void own_colours(Context& ctx);
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
  // What is alike stands together; the settings file numbers the classes in the order in which they came.
  static constexpr ItemClass kOrder[kItemClasses] = {
      ItemClass::steps, ItemClass::modules, ItemClass::kernels,    ItemClass::own_spans,
      ItemClass::waits, ItemClass::gathers, ItemClass::reductions, ItemClass::transfers,
      ItemClass::gpu,   ItemClass::curves,  ItemClass::marks,      ItemClass::notes};
  for (const ItemClass what : kOrder) {
    bool shown = !view.hides(what);
    if (ImGui::Checkbox(word(what), &shown)) view.set(what, shown);
    static constexpr const char* kTips[kItemClasses] = {
        "Spans of modules in the compute lane",
        "The lane of waits, and waits in the compute lane",
        "The lanes of gathers",
        "Spans of kernels in the compute lane",
        "The lanes of the GPU's streams",
        "Underlines of found spans, arrows, and marks of late or early gathers",
        "Flags of notes and bookmarks",
        "The lanes of copies, NVMe and the host's workers",
        "Spans that the program names itself (shardscope_span_begin)",
        "The lanes of reductions, with the marks of flushes",
        "The lanes of steps, micro-steps and pauses",
        "Curves over time: memory, live elements, loss, counters of the program"};
    item_tip("%s", kTips[static_cast<int>(what)]);
  }
  const std::string hidden = hidden_text(view);
  if (!hidden.empty()) ImGui::TextColored(ink(ctx.colors().warning), "%s", hidden.c_str());
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
  item_tip(
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
  item_tip(
      "Of a live run that the timeline follows; 0: the range keeps its length. Zooming overrides it until "
      "following is resumed");
}

void OptionsView::axes(Context& ctx) {
  ViewOptions& view = ctx.app.timeline.view;
  ImGui::SeparatorText("Axes of time");
  ImGui::Checkbox("memory shows the timeline's range", &view.memory_linked);
  item_tip("Zooming one zooms the other. Off: the memory curve has a range of its own");
  ImGui::Checkbox("plots per step show the timeline's range", &view.steps_linked);
  item_tip(
      "Loss, step time, tokens/s and others: zooming one zooms the timeline. They show two steps at least. "
      "Off: "
      "they share a range of steps of their own");
}

/// A field for each meaning. Colours that are hard to see on a panel are named.
void OptionsView::own_colours(Context& ctx) {
  AppState& app = ctx.app;
  static constexpr const char* kLabels[kMeaningCount] = {"compute, parameters",
                                                         "all-gather, gathered parameters",
                                                         "reduction, gradients",
                                                         "optimizer",
                                                         "activations",
                                                         "copies, offload, swap",
                                                         "buffers",
                                                         "waiting, late, error",
                                                         "steps, phases, other"};
  const auto part = [](Rgb color, unsigned shift) { return static_cast<float>(color >> shift & 255U) / 255; };
  const auto byte = [](float value) {
    return static_cast<Rgb>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255));
  };
  for (int i = 0; i < kMeaningCount; ++i) {
    const auto meaning = static_cast<Meaning>(i);
    const Rgb now = ctx.colors().of(meaning);
    float rgb[3]{part(now, 16), part(now, 8), part(now, 0)};
    ImGui::PushID(i);
    ImGui::SetNextItemWidth(104);
    if (ImGui::ColorEdit3(kLabels[i], rgb, ImGuiColorEditFlags_DisplayHex | ImGuiColorEditFlags_InputRGB))
      app.own_colours.set(app.theme, meaning, byte(rgb[0]) << 16 | byte(rgb[1]) << 8 | byte(rgb[2]));
    if (app.own_colours.of(app.theme, meaning)) {
      ImGui::SameLine();
      if (ImGui::SmallButton("reset"))
        app.own_colours.set(app.theme, meaning, palette(app.theme).of(meaning));
    }
    if (const std::string warning = app.own_colours.warning(app.theme, meaning); !warning.empty())
      ImGui::TextColored(ink(ctx.colors().text), "   %s", warning.c_str());
    ImGui::PopID();
  }
  ImGui::BeginDisabled(!app.own_colours.any(app.theme));
  if (ImGui::Button("The theme's colours")) app.own_colours.reset(app.theme);
  ImGui::EndDisabled();
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
  ImGui::TextDisabled(
      "Each theme has colours of its own below, also in its pictures. One that you choose may be hard to "
      "tell "
      "from another, or with a colour blindness.");
  ImGui::PopTextWrapPos();
  own_colours(ctx);
  ImGui::PushTextWrapPos(0);
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
    axes(ctx);
    colours(ctx);
  }
  ImGui::EndChild();
}

}  // namespace

std::unique_ptr<View> make_options_view() { return std::make_unique<OptionsView>(); }

}  // namespace shardscope::gui
