// The ruler of steps under the top bar: one bar per step, and the visible range as a brush on it.
#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/workspace.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

struct Bar {
  std::int64_t length_ns = 0;
  std::int64_t worst_ns = 0;
  Meaning worst = Meaning::compute;
  bool known = false;
};

/// The largest part of a step that was not computation, worst rank.
Bar bar_of(const Session& run, std::size_t index) {
  const store::StepRow& step = run.store().steps()[index];
  Bar bar;
  bar.length_ns = store::time_of(run.store(), step).running_ns;
  const StepTimes* times = run.step_times(step.step);
  if (times == nullptr) return bar;
  bar.known = true;
  for (const auto& [rank, time] : times->ranks) {
    if (!time.known()) continue;
    const auto consider = [&](std::int64_t ns, Meaning meaning) {
      if (ns > bar.worst_ns) {
        bar.worst_ns = ns;
        bar.worst = meaning;
      }
    };
    consider(time.exposed_comm_ns, kExposedComm);
    consider(time.exposed_copy_ns, kExposedCopy);
    consider(time.idle_ns, Meaning::neutral);
  }
  return bar;
}

/// Position of a time on the axis of steps, in steps.
double step_position(std::span<const store::StepRow> steps, std::int64_t at_ns, std::int64_t end_ns) {
  const std::optional<std::size_t> index = step_of(steps, at_ns);
  if (!index) return 0;
  const store::StepRow& step = steps[*index];
  const std::int64_t end = step.end_ns == store::kOpen ? end_ns : step.end_ns;
  const double share = static_cast<double>(at_ns - step.begin_ns) /
                       static_cast<double>(std::max<std::int64_t>(1, end - step.begin_ns));
  return static_cast<double>(*index) + std::min(1.0, share);
}

}  // namespace

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
  const std::string partial = app.run->partial(true);
  ctx.canvas.text_in({label.x, label.y, label.w - 4, 20}, partial.empty() ? "Steps" : partial,
                     partial.empty() ? c.muted : c.of(Meaning::reduce), Font::small);
  ctx.canvas.text_in({label.x, label.y + 20, label.w, 16},
                     std::to_string(steps.front().step) + " to " + std::to_string(steps.back().step), c.text,
                     Font::mono_small);
  const auto n = static_cast<float>(steps.size());
  const float pitch = std::min(room.w / n, 32.0F);
  std::int64_t longest = 1;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    lengths.push_back(bar_of(*app.run, i).length_ns);
    longest = std::max(longest, lengths.back());
  }
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2),
                   lengths.end());
  // One slow step (the first, usually) must not flatten all others: three medians fill the height.
  const double full =
      std::min(static_cast<double>(longest),
               3.0 * static_cast<double>(std::max<std::int64_t>(1, lengths[lengths.size() / 2])));
  const float bar_gap = pitch > 4 ? 1.0F : 0.0F;
  float painted_to = room.x - 1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const float x = room.x + static_cast<float>(i) * pitch;
    if (x + pitch <= painted_to + 0.9F) continue;
    painted_to = std::floor(x + pitch);
    const Bar bar = bar_of(*app.run, i);
    const auto share = static_cast<float>(std::min(1.0, static_cast<double>(bar.length_ns) / full));
    const float h = std::max(2.0F, share * (room.h - 2));
    const Rect box{x, room.bottom() - h, std::max(1.0F, pitch - bar_gap), h};
    const bool chosen = app.selection.kind == SelectionKind::step && app.selection.step == steps[i].step;
    ctx.canvas.fill(box, c.of(bar.known ? Meaning::compute : Meaning::neutral), bar.known ? 0.85F : 0.5F);
    if (bar.worst_ns > 0 && bar.length_ns > 0) {
      const float worst =
          h * std::min(1.0F, static_cast<float>(bar.worst_ns) / static_cast<float>(bar.length_ns));
      ctx.canvas.fill({box.x, box.y, box.w, worst}, c.of(bar.worst));
    }
    if (static_cast<double>(bar.length_ns) > full * 1.001)
      ctx.canvas.fill({box.x, box.y, box.w, 3}, c.of(Meaning::trouble));
    if (steps[i].skipped) ctx.canvas.hatch(box, c.of(Meaning::trouble), 1, 4);
    if (chosen) ctx.canvas.outline(box, c.text, 1, 1);
    const Rect hit{x, room.y, pitch, room.h};
    if (ctx.hovered(hit)) {
      ctx.canvas.fill(hit, c.text, 0.08F);
      static constexpr const char* kWorst[] = {
          "", "exposed communication", "", "", "", "exposed copies", "", "", "idle"};
      std::string tip = "Step " + std::to_string(steps[i].step) + ": " + duration(bar.length_ns).text();
      if (bar.worst_ns > 0)
        tip += ", worst part " + duration(bar.worst_ns).text() + " " + kWorst[static_cast<int>(bar.worst)];
      if (!bar.known && steps[i].end_ns != store::kOpen) tip += ", not analysed yet";
      ctx.tip(tip);
    }
  }
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
  switch (ctx.drag(&brush_owner_, room, 0)) {
    case Context::Drag::clicked: {
      const auto index = static_cast<std::size_t>(std::clamp((ctx.pointer.x - room.x) / pitch, 0.0F, n - 1));
      app.go_to_step(steps[index].step);
      app.select_step(steps[index].step);
      break;
    }
    case Context::Drag::going: {
      const std::int64_t delta = time_at(ctx.pointer.x) - time_at(ctx.pointer.x - ctx.pointer.dx);
      app.time.pan(delta, end);
      app.follow = false;
      break;
    }
    default:
      break;
  }
}

}  // namespace shardscope::gui
