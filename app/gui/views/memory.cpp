// Memory: contents of a rank's pool over time, and below them live allocations or the sizes of other
// stages.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/analysis/missing_reason.h"
#include "app/gui/model/format.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/views/alive_pane.h"
#include "app/gui/views/held_pane.h"
#include "app/gui/views/memory_curve.h"
#include "app/gui/views/memory_legend.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/stage_bars.h"

namespace shardscope::gui {
namespace {

/// Content below the curve.
enum class Below : std::uint8_t { nothing, peak, now, difference, held, stages };

class MemoryView final : public View {
 public:
  std::string_view name() const override { return "memory"; }
  std::string_view title() const override { return "Memory"; }
  bool analysed() const override { return true; }
  void update(Context& ctx) override;
  std::vector<Choice> choices(const AppState& app) override;
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void below(Context& ctx, const Rect& room, const store::MemorySample& peak);
  void curve_and_legend(Context& ctx, Rect room, const store::MemorySample& peak);

  Below below_ = Below::nothing;
  MemoryCurve curve_;
  MemoryLegend legend_;
  AlivePane alive_;
  HeldPane held_;
};

/// Switches every panel to a pool that the rank has.
void MemoryView::update(Context& ctx) {
  AppState& app = ctx.app;
  const auto pools = used_pools(app.store(), app.memory_rank);
  if (!pools.empty() && std::ranges::find(pools, app.memory_pool) == pools.end())
    app.memory_pool = pools.front();
}

std::vector<Choice> MemoryView::choices(const AppState& app) {
  std::vector<Choice> out{{"below the curve",
                           {"curve only", "at the peak", "now", "difference", "held", "stages"},
                           static_cast<int>(below_),
                           [this](AppState&, int to) { below_ = static_cast<Below>(to); }}};
  if (below_ == Below::peak || below_ == Below::now)
    out.push_back(
        {"tree", {"by category", "by owner"}, static_cast<int>(alive_.first), [this](AppState&, int to) {
           alive_.first = static_cast<AlivePane::First>(to);
         }});
  const auto pools = used_pools(app.store(), app.memory_rank);
  const auto chosen = std::ranges::find(pools, app.memory_pool);
  if (pools.size() < 2) return out;
  Choice pool{"pool", {}, static_cast<int>(chosen == pools.end() ? 0 : chosen - pools.begin()), nullptr};
  for (const auto& one : pools) pool.labels.emplace_back(word(one));
  pool.choose = [pools](AppState& state, int to) { state.memory_pool = pools[static_cast<std::size_t>(to)]; };
  out.push_back(std::move(pool));
  return out;
}

void MemoryView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const std::string label = "rank " + std::to_string(app.memory_rank);
  Rect place;
  if (!ctx.menu_button_right(room, label, place, app.store().ranks().size() > 1)) return;
  std::vector<OverlayItem> items;
  for (const store::RankRow& rank : app.store().ranks()) {
    const std::uint32_t id = rank.rank;
    const auto peak = app.store().memory_peak(id, app.memory_pool);
    items.push_back({"rank " + std::to_string(id), peak ? "peak " + bytes(peak->total()).text() : "", true,
                     id == app.memory_rank, [&app, id] { app.memory_rank = id; }});
  }
  ctx.menu(place, std::move(items));
}

void MemoryView::below(Context& ctx, const Rect& room, const store::MemorySample& peak) {
  switch (below_) {
    case Below::nothing:
      return;
    case Below::peak:
      return alive_.draw(ctx, room, peak, AlivePane::When::peak);
    case Below::now:
      return alive_.draw(ctx, room, peak, AlivePane::When::now);
    case Below::difference:
      return alive_.draw(ctx, room, peak, AlivePane::When::difference);
    case Below::held:
      return held_.draw(ctx, room);
    case Below::stages:
      return draw_stage_bars(ctx, room);
  }
}

/// The legend is beside the curve if there is room, else below it; a small panel has none.
void MemoryView::curve_and_legend(Context& ctx, Rect room, const store::MemorySample& peak) {
  const AppState& app = ctx.app;
  const store::MemorySample now = app.store().memory_at(app.memory_rank, app.memory_pool, app.now_ns());
  const std::vector<ev::MemoryCategory> used = curve_.used();
  Rect side;
  if (room.w > 440 && room.h > 120) {
    side = room.take_right(MemoryLegend::width_beside(room.w));
    room.take_right(16);
  } else if (room.h > 110) {
    const float height = MemoryLegend::height_below(ctx.canvas, room.w, used);
    legend_.draw_below(ctx, room.take_bottom(std::min(height, room.h * 0.35F)), used);
  }
  curve_.draw(ctx, room, peak, legend_, below_ == Below::difference ? alive_.from_ns() : std::nullopt);
  if (!side.empty()) legend_.draw_beside(ctx, side, used, now, peak);
}

void MemoryView::draw(Context& ctx, Rect room) {
  const AppState& app = ctx.app;
  const auto peak = app.store().memory_peak(app.memory_rank, app.memory_pool);
  if (!peak) {
    ctx.empty(room, "No memory events of rank " + std::to_string(app.memory_rank),
              "So far " +
                  analysis::missing_reason(app.run->summary(), "memory events", ev::Detail::params,
                                           ev::Capability::memory) +
                  ".");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  if (below_ != Below::nothing) {
    const bool both = room.h > 300;
    const Rect table = both ? room.take_bottom(room.h * 0.52F) : room;
    below(ctx, table, *peak);
    if (!both) return;
  }
  curve_and_legend(ctx, room, *peak);
}

}  // namespace

std::unique_ptr<View> make_memory_view() { return std::make_unique<MemoryView>(); }

}  // namespace shardscope::gui
