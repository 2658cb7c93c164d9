#include "app/gui/views/timeline_frames.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

// Pixels.
constexpr float kStrip = 18;
constexpr float kNarrowestFrame = 4;
/// More steps are not searched for micro-steps in each frame of the window.
constexpr std::size_t kMostStepsRead = 32;

std::string tip_of(const StepFrame& frame) {
  return labels_of(frame).front() + ": " + duration(frame.range.length()).text() +
         "\nClick: show it. Shift+Page Up, Shift+Page Down: the micro-step beside";
}

}  // namespace

void TimelineFrames::strip(Context& ctx, Rect& room, float gutter, const TimeScale& scale) {
  frames_.clear();
  const AppState& app = ctx.app;
  if (!has_micro_steps(app.store())) return;
  const Palette& c = ctx.colors();
  Rect strip = room.take_top(kStrip);
  ctx.canvas.horizontal(strip.x, strip.bottom() - 1, strip.w, c.line);
  const Rect label = strip.take_left(gutter);
  strip.w -= 8;
  frames_ = frames_in(app.store(), scale.range,
                      static_cast<std::int64_t>(scale.ns_per_pixel() * static_cast<double>(kNarrowestFrame)),
                      kMostStepsRead);
  const bool steps =
      !frames_.empty() && std::ranges::all_of(frames_, [](const StepFrame& frame) { return frame.of == 1; });
  ctx.canvas.text_in({label.x + 8, label.y, label.w - 16, label.h}, steps ? "step" : "micro-steps", c.muted,
                     Font::small, Align::right);
  if (frames_.empty()) {
    ctx.canvas.text_in({strip.x + 4, strip.y, strip.w - 4, strip.h}, "zoom in for steps and micro-steps",
                       c.muted, Font::small);
    return;
  }
  const Clip clip(ctx.canvas, strip);
  const std::int64_t now = app.now_ns();
  for (const StepFrame& frame : frames_) {
    const float x0 = std::max(strip.x, scale.x_of(frame.range.begin_ns));
    const float x1 = std::min(strip.right(), scale.x_of(frame.range.end_ns));
    if (x1 > x0) box(ctx, frame, {x0, strip.y + 1, x1 - x0, strip.h - 3}, frame.range.contains(now));
  }
}

void TimelineFrames::box(Context& ctx, const StepFrame& frame, const Rect& place, bool at_cursor) {
  const Palette& c = ctx.colors();
  const bool over = ctx.hovered(place);
  // Neighbours differ, so that no borders are needed where they are narrow.
  const bool second = (frame.of > 1 ? frame.place : frame.step) % 2 == 1;
  ctx.canvas.fill(place, second ? c.line : c.raised, over ? 1.0F : 0.8F);
  if (frame.place == 0) ctx.canvas.vertical(place.x, place.y, place.h, c.muted, 0.9F);
  if (at_cursor) ctx.canvas.fill({place.x, place.bottom() - 2, place.w, 2}, c.accent);
  const float room = place.w - 8;
  for (const std::string& label : labels_of(frame)) {
    if (ctx.canvas.width(label, Font::small) > room) continue;
    ctx.canvas.text_in({place.x + 4, place.y, room, place.h}, label, over || at_cursor ? c.text : c.muted,
                       Font::small, Align::centre);
    break;
  }
  if (!over) return;
  ctx.tip(tip_of(frame));
  if (ctx.clicked(place)) ctx.app.go_into(frame.range);
}

void TimelineFrames::lines(Context& ctx, const Rect& lanes, const TimeScale& scale) const {
  for (const StepFrame& frame : frames_)
    if (frame.of > 1 && frame.place > 0 && scale.range.contains(frame.range.begin_ns))
      ctx.canvas.vertical(scale.x_of(frame.range.begin_ns), lanes.y, lanes.h, ctx.colors().line, 0.6F);
}

}  // namespace shardscope::gui
