#include "app/gui/views/rank_drag.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardscope::gui {

void RankDrag::look(Context& ctx, const TimelineRows& rows, const Rect& gutter, float top) {
  AppState& app = ctx.app;
  clicked_.reset();
  drop_.reset();
  const double elapsed = ctx.seconds - std::exchange(looked_at_, ctx.seconds);
  const TimelineRow* const under = rows.at(ctx.pointer.y - top);
  const bool held = ctx.ui.captured == &owner_;
  Rect header{};
  if (under != nullptr && under->kind == RowKind::rank && ctx.hovered(gutter)) {
    header = {gutter.x, top + under->y, gutter.w, under->height};
    if (ctx.pointer.pressed[0]) {
      held_ = under->rank;
      cancelled_ = false;
    }
  }
  if (held && ctx.presses(key::kEscape) > 0) cancelled_ = true;
  switch (ctx.drag(&owner_, header, 0)) {
    case Context::Drag::going: {
      if (!held_ || cancelled_ || app.store().ranks().size() < 2) return;
      // Scroll the rows while the pointer is outside.
      app.timeline_scroll += drag_scroll(ctx.pointer.y, gutter.y, gutter.bottom(), elapsed);
      ctx.moving = ctx.moving || ctx.pointer.y < gutter.y || ctx.pointer.y > gutter.bottom();
      drop_ = drop_at(app.store(), app.timeline, rows, *held_, ctx.pointer.y - top);
      ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
      return;
    }
    case Context::Drag::dropped:
      if (held_ && !cancelled_) {
        const auto drop = drop_at(app.store(), app.timeline, rows, *held_, ctx.pointer.y - top);
        if (drop && place_rank(app, *held_, drop->gap)) {
          ctx.ui.say("Rank " + std::to_string(*held_) +
                     " moved: Ctrl+Z undoes it, Ranks by number sorts again");
          ctx.moving = true;
        }
      }
      held_.reset();
      return;
    case Context::Drag::clicked:
      if (!cancelled_) clicked_ = held_;
      held_.reset();
      return;
    default:
      return;
  }
}

void RankDrag::draw(Context& ctx, const Rect& room, const Rect& gutter, float top) const {
  if (!drop_ || !held_) return;
  const Palette& c = ctx.colors();
  const float y = std::clamp(top + drop_->y - 1, room.y, room.bottom() - 2);
  ctx.canvas.fill({room.x, y - 1, room.w, 2}, c.accent);
  ctx.canvas.triangle(gutter.x, y - 5, gutter.x, y + 5, gutter.x + 6, y, c.accent);
  const std::string name = "rank " + std::to_string(*held_);
  const Rect label{std::clamp(ctx.pointer.x + 12, room.x + 8, room.right() - 90),
                   std::clamp(ctx.pointer.y - 11, room.y, std::max(room.y, room.bottom() - 22)),
                   ctx.canvas.width(name, Font::strong) + 16, 22};
  ctx.canvas.fill(label, c.raised, 0.95F, 3);
  ctx.canvas.outline(label, c.accent, 1, 1, 3);
  ctx.canvas.text_in(label, name, c.text, Font::strong, Align::centre);
}

}  // namespace shardscope::gui
