// The step ruler below the top bar: a bar per step, and the visible range as a brush.
#include <algorithm>
#include <cmath>
#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/micro_steps.h"
#include "app/gui/model/range_grip.h"
#include "app/gui/model/step_bars.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

/// Position of a time on the step axis, in steps.
double step_position(std::span<const store::StepRow> steps, std::int64_t at_ns, std::int64_t end_ns) {
  const std::optional<std::size_t> index = step_of(steps, at_ns);
  if (!index) return 0;
  const store::StepRow& step = steps[*index];
  const std::int64_t end = step.end_ns == store::kOpen ? end_ns : step.end_ns;
  const double share = static_cast<double>(at_ns - step.begin_ns) /
                       static_cast<double>(std::max<std::int64_t>(1, end - step.begin_ns));
  return static_cast<double>(*index) + std::min(1.0, share);
}

/// Micro-steps are drawn where at most so many steps are shown, and each is at least so wide.
constexpr std::size_t kStepsWithMicroSteps = 12;
constexpr float kLeastMicroStep = 3;

/// Lines between the micro-steps of a step's bar. Returns the one under the pointer, with their number.
std::string micro_step_lines(Context& ctx, const store::StepRow& step, const Rect& bar, const Rect& hit) {
  const std::vector<MicroStep> all = micro_steps_of(ctx.app.store(), step);
  if (all.empty() || bar.w < kLeastMicroStep * static_cast<float>(all.size())) return {};
  const std::int64_t end = step.end_ns == store::kOpen ? ctx.app.store().end_ns() : step.end_ns;
  const TimeScale scale{{step.begin_ns, std::max(end, step.begin_ns + 1)}, bar.x, bar.w};
  std::string under;
  for (const MicroStep& one : all) {
    const float x0 = scale.x_of(one.begin_ns), x1 = scale.x_of(one.end_ns);
    if (&one != &all.front()) ctx.canvas.vertical(x0, hit.y, hit.h, ctx.colors().base, 0.9F);
    if (ctx.pointer.x < x0 || ctx.pointer.x >= x1) continue;
    ctx.canvas.fill({x0, hit.bottom() - 3, x1 - x0, 3}, ctx.colors().text, 0.8F);
    // Frameworks number them over the run.
    under = "micro-step " + std::to_string(one.number) + ", " + std::to_string(&one - all.data() + 1) +
            " of " + std::to_string(all.size()) + ": " + duration(one.end_ns - one.begin_ns).text();
  }
  return under;
}

}  // namespace

/// The range of steps; with a target the number of longer steps, and a link to the option.
void Workspace::ruler_label(Context& ctx, const Rect& label) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const auto steps = app.store().steps();
  const std::int64_t target = app.timeline.view.step_target_ns;
  std::string text = app.run->partial(true);
  Rgb color = text.empty() ? c.muted : c.warning;
  if (text.empty() && target > 0) {
    text = grouped(static_cast<std::int64_t>(step_bars_.beyond())) + " over target";
    color = step_bars_.beyond() > 0 ? c.of(Meaning::trouble) : c.muted;
  }
  if (text.empty()) text = "Steps";
  ctx.canvas.text_in({label.x, label.y, label.w - 4, 20}, text, color, Font::small);
  ctx.canvas.text_in({label.x, label.y + 20, label.w, 16},
                     std::to_string(steps.front().step) + " to " + std::to_string(steps.back().step), c.text,
                     Font::mono_small);
  if (target <= 0) return;
  if (ctx.activated(label, "target")) ctx.ui.show_panel = "options";
  if (!ctx.hovered(label)) return;
  ctx.tip(grouped(static_cast<std::int64_t>(step_bars_.beyond())) + " of " +
          grouped(static_cast<std::int64_t>(steps.size())) + " steps took longer than the target of " +
          duration(target).text() + ", without pauses. Click: the options");
}

/// Menu for the target duration: that of a step, the median, or none.
void Workspace::target_menu(Context& ctx, const StepBar& bar, const Rect& anchor) {
  AppState& app = ctx.app;
  std::int64_t& target = app.timeline.view.step_target_ns;
  const std::int64_t median = step_bars_.median_ns();
  const std::string step = std::to_string(app.store().steps()[bar.longest].step);
  ctx.menu(anchor, {{"Target: step " + step, duration(bar.length_ns).text(), bar.length_ns > 0,
                     target == bar.length_ns, [&target, to = bar.length_ns] { target = to; }},
                    {"Target: the median step", duration(median).text(), median > 0, target == median,
                     [&target, median] { target = median; }},
                    {"No target", "", true, target == 0, [&target] { target = 0; }},
                    {"Another target...", "Options", true, false,
                     [&ctx_ui = ctx.ui] { ctx_ui.show_panel = "options"; }, true}});
}

void Workspace::step_ruler(Context& ctx, Rect rect) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.horizontal(rect.x, rect.bottom() - 1, rect.w, c.line);
  Rect room = rect.inset(12, 4);
  const auto steps = app.store().steps();
  if (steps.empty()) {
    ctx.canvas.text_in(room,
                       app.run->live() ? "Steps appear here as they complete" : "No steps in this recording",
                       c.muted, Font::small);
    return;
  }
  const Rect label = room.take_left(144);
  const auto n = static_cast<float>(steps.size());
  const float pitch = std::min(room.w / n, 32.0F);
  const std::int64_t target = app.timeline.view.step_target_ns;
  const std::vector<StepBar>& bars =
      step_bars_.of(*app.run, static_cast<std::size_t>(std::max(1.0F, pitch < 1 ? room.w : n)), target);
  ruler_label(ctx, label);
  const double full = step_bars_.full_ns();
  const float target_height = static_cast<float>(static_cast<double>(target) / full) * (room.h - 2);
  const float bar_gap = pitch > 4 ? 1.0F : 0.0F;
  const auto x_at = [&](std::size_t index) { return room.x + static_cast<float>(index) * pitch; };
  const TimeRange shown = app.time.range();
  const std::size_t first_shown = step_of(steps, shown.begin_ns).value_or(0),
                    last_shown = step_of(steps, shown.end_ns).value_or(0);
  const bool with_micro_steps = last_shown - first_shown < kStepsWithMicroSteps;
  for (const StepBar& bar : bars) {
    const float x = x_at(bar.first), width = x_at(bar.last) - x;
    const auto share = static_cast<float>(std::min(1.0, static_cast<double>(bar.length_ns) / full));
    const float h = std::max(2.0F, share * (room.h - 2));
    const Rect box{x, room.bottom() - h, std::max(1.0F, width - bar_gap), h};
    ctx.canvas.fill(box, c.of(bar.known ? Meaning::compute : Meaning::neutral), bar.known ? 0.85F : 0.5F);
    if (bar.worst_ns > 0 && bar.length_ns > 0) {
      const float worst =
          h * std::min(1.0F, static_cast<float>(bar.worst_ns) / static_cast<float>(bar.length_ns));
      ctx.canvas.fill({box.x, box.y, box.w, worst}, c.of(bar.worst));
    }
    // Mark the part above the target, if it is visible.
    if (target > 0 && bar.length_ns > target) {
      // On the right half if the bar also shows its largest part.
      const float above = std::min(h, std::max(3.0F, h - target_height));
      const float left = bar.worst_ns > 0 && box.w >= 4 ? box.w / 2 : 0;
      ctx.canvas.fill({box.x + left, box.y, box.w - left, above}, c.of(Meaning::trouble));
    }
    if (static_cast<double>(bar.length_ns) > full * 1.001)
      ctx.canvas.fill({box.x, box.y, box.w, 3}, c.of(Meaning::trouble));
    if (bar.skipped) ctx.canvas.hatch(box, c.of(Meaning::trouble), 1, 4);
    if (app.selection.kind == SelectionKind::step && app.selection.step >= steps[bar.first].step &&
        app.selection.step <= steps[bar.last - 1].step)
      ctx.canvas.outline(box, c.text, 1, 1);
    const Rect hit{x, room.y, width, room.h};
    std::string micro_step;
    if (with_micro_steps && bar.last == bar.first + 1 && bar.first >= first_shown && bar.first <= last_shown)
      micro_step = micro_step_lines(ctx, steps[bar.first], box, hit);
    if (ctx.hovered(hit)) {
      ctx.canvas.fill(hit, c.text, 0.08F);
      ctx.tip(text_of(bar, *app.run, target) + (micro_step.empty() ? "" : "\n" + micro_step));
      if (ctx.pointer.released[1]) target_menu(ctx, bar, {ctx.pointer.x, ctx.pointer.y, 1, 1});
    }
  }
  // A target above the plot is drawn at the top edge.
  if (target > 0)
    ctx.canvas.dashed(room.x, room.bottom() - std::min(target_height, room.h - 2), room.w,
                      c.of(Meaning::trouble));
  const std::int64_t end = app.store().end_ns();
  const auto x_of = [&](std::int64_t at) {
    return room.x + static_cast<float>(step_position(steps, at, end)) * pitch;
  };
  const TimeRange range = app.time.range();
  const float x0 = x_of(range.begin_ns);
  const float x1 = std::max(x0 + 3, x_of(range.end_ns));
  ctx.canvas.fill({x0, room.y - 2, x1 - x0, room.h + 2}, c.accent, 0.12F);
  ctx.canvas.vertical(x0, room.y - 2, room.h + 2, c.accent);
  ctx.canvas.vertical(x1, room.y - 2, room.h + 2, c.accent);
  if (app.cursor_ns) ctx.canvas.vertical(x_of(*app.cursor_ns), room.y, room.h, c.text, 0.8F);
  if (app.hover_ns) ctx.canvas.vertical(x_of(*app.hover_ns), room.y, room.h, c.muted, 0.5F);

  const auto time_at = [&](float x) {
    const double position =
        std::clamp(static_cast<double>((x - room.x) / pitch), 0.0, static_cast<double>(n) - 1e-6);
    const auto index = static_cast<std::size_t>(position);
    const store::StepRow& step = steps[index];
    const std::int64_t to = step.end_ns == store::kOpen ? end : step.end_ns;
    return step.begin_ns + static_cast<std::int64_t>((position - static_cast<double>(index)) *
                                                     static_cast<double>(to - step.begin_ns));
  };
  if (ctx.hovered(room) && ctx.pointer.x < room.x + n * pitch) app.hover_next_ns = time_at(ctx.pointer.x);
  const Grip grip = grip_at(ctx.pointer.x, x0, x1);
  const bool at_end = ctx.hovered(room) && (grip == Grip::begin || grip == Grip::end);
  if (at_end || (ctx.ui.captured == &brush_owner_ && brush_fixed_))
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (at_end) {
    ctx.canvas.fill({(grip == Grip::begin ? x0 : x1) - 1, room.y - 2, 3, room.h + 2}, c.accent);
    ctx.tip("Drag to move this end of the shown range");
  }
  const Context::KeyArea keys = ctx.key_area(room, "steps");
  const std::size_t now = step_of(steps, app.now_ns()).value_or(0);
  const auto here = std::ranges::upper_bound(bars, now, {}, &StepBar::first) - 1;
  if (keys.at) ctx.ui.key_tip.aim((x_at(here->first) + x_at(here->last)) / 2, room.y + room.h / 2);
  if (keys.across != 0 || keys.chosen || keys.menu) {
    // As a click: the longest step of the bar at this time, or of one beside it.
    const auto to = std::clamp<std::ptrdiff_t>(here - bars.begin() + keys.across, 0, std::ssize(bars) - 1);
    const StepBar& bar = bars[static_cast<std::size_t>(to)];
    if (keys.across != 0) {
      app.go_to_step(steps[bar.longest].step);
      app.select_step(steps[bar.longest].step);
    } else {
      target_menu(ctx, bar, {x_at(bar.first), room.y, 1, room.h});
    }
  }
  switch (ctx.drag(&brush_owner_, room, 0)) {
    case Context::Drag::begun:
      if (ctx.pointer.pressed[0])
        brush_fixed_ = at_end ? std::optional(fixed_end(range, grip)) : std::nullopt;
      break;
    case Context::Drag::clicked: {
      const auto index = static_cast<std::size_t>(std::clamp((ctx.pointer.x - room.x) / pitch, 0.0F, n - 1));
      const auto bar = std::ranges::upper_bound(bars, index, {}, &StepBar::first) - 1;
      app.go_to_step(steps[bar->longest].step);
      app.select_step(steps[bar->longest].step);
      break;
    }
    case Context::Drag::going: {
      app.follow = false;
      if (brush_fixed_) {
        app.time.set(range_between(*brush_fixed_, time_at(ctx.pointer.x)), end);
        break;
      }
      const std::int64_t delta = time_at(ctx.pointer.x) - time_at(ctx.pointer.x - ctx.pointer.dx);
      app.time.pan(delta, end);
      break;
    }
    default:
      break;
  }
}

}  // namespace shardscope::gui
