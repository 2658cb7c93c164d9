#include "app/gui/views/alive_pane.h"

#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"

namespace shardscope::gui {

void AlivePane::read(const AppState& app, const Of& of) {
  if (of_ == of) return;
  of_ = of;
  const AliveMemory at = alive_memory(app.store(), of.rank, of.pool, of.at_ns);
  nodes_ =
      of.when == When::difference
          ? alive_difference(*app.run, of.rank, alive_memory(app.store(), of.rank, of.pool, of.before_ns), at)
      : of.first == First::owner ? alive_by_owner(*app.run, of.rank, at)
                                 : alive_tree(*app.run, of.rank, at);
}

void AlivePane::draw(Context& ctx, Rect room, const store::MemorySample& peak, When when) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room.take_top(6);
  Rect head = room.take_top(24);
  const std::int64_t now = app.now_ns();
  const bool difference = when == When::difference;
  if (difference) {
    constexpr const char* kMark = "Mark this time";
    constexpr const char* kTip = "Compares memory at this time with the time where the cursor is set next";
    const bool chosen = ctx.offered(kMark, true, kTip);
    if (ctx.button_right(head, kMark, true, Context::Look::plain, kTip) || chosen) from_ns_ = now;
    if (!from_ns_) from_ns_ = 0;
  }
  const Of of{app.run->number(),
              app.memory_rank,
              app.memory_pool,
              when,
              first,
              when == When::peak ? peak.at_ns : now,
              difference ? *from_ns_ : 0};
  // Each time is a replay: while a live run progresses, "now" is read only when paused or with a cursor.
  const bool moves = app.run->live() && when != When::peak && !app.cursor_ns && !app.paused();
  if (!moves) read(app, of);
  const std::string at = timestamp(of.at_ns, 10'000);
  const std::string title = moves        ? "Pause the run or set a time to list live memory"
                            : difference ? "From " + timestamp(of.before_ns, 10'000) + " to " + at
                            : !app.store().is_known(of.rank, of.at_ns)
                                ? not_kept_text() + ": at most, about " + at
                            : when == When::peak ? "Alive at the peak, " + at
                                                 : "Alive at " + at;
  ctx.canvas.text_in(head, title, c.muted, Font::small);
  if (moves) return;
  if (nodes_.empty()) {
    ctx.canvas.text_in(room.take_top(20), difference ? "No difference" : "Nothing is alive", c.muted,
                       Font::small);
    return;
  }
  const AliveNode* const chosen =
      table_.draw(ctx, of.first == First::owner ? "##alive by owner" : "##alive", room, nodes_,
                  difference ? AliveTable::Columns::difference : AliveTable::Columns::alive);
  if (chosen == nullptr) return;
  if (chosen->since_ns) app.jump_to(*chosen->since_ns);
  if (chosen->owner == ev::kNoId) return;
  if (owner_kind(chosen->category) == OwnerKind::param) {
    app.select_param(chosen->owner, of.rank);
  } else {
    app.select_module(chosen->owner, of.rank);
  }
}

}  // namespace shardscope::gui
