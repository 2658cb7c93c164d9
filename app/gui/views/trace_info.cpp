// Trace info: facts about the run and its recording, its machines, and event counts by kind.
#include "app/gui/model/trace_info.h"

#include <imgui.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "app/gui/model/moment_marks.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class TraceInfoView final : public View {
 public:
  std::string_view name() const override { return "trace_info"; }
  std::string_view title() const override { return "Trace info"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  TraceInfo info_;
  std::uint64_t run_ = 0;  ///< Session::number() of info_
  TableState facts_, events_, machines_;
};

std::string whole(const Table& table) {
  std::vector<std::size_t> rows(table.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return tab_separated(table, rows);
}

void TraceInfoView::header(Context& ctx, Rect& room) {
  if (!ctx.button_right(room, "Copy", true, Context::Look::plain, "Copies all of it as text")) return;
  const TraceInfo::Tables& tables = info_.of(ctx.app, ctx.seconds);
  ImGui::SetClipboardText(
      (whole(tables.facts) + "\n" + whole(tables.machines) + "\n" + whole(tables.events)).c_str());
  ctx.ui.say("Copied the trace info");
}

void TraceInfoView::draw(Context& ctx, Rect room) {
  if (run_ != ctx.app.run->number()) {
    run_ = ctx.app.run->number();
    info_ = {};
  }
  const TraceInfo::Tables& tables = info_.of(ctx.app, ctx.seconds);
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  if (room.w > 760) {
    const Rect right = room.take_right(std::min(320.0F, room.w * 0.32F));
    room.take_right(16);
    draw_table(ctx, "##trace events", right, tables.events, events_);
  } else if (room.h > 260) {
    const Rect below = room.take_bottom(std::min(table_height(tables.events), room.h * 0.4F));
    room.take_bottom(8);
    draw_table(ctx, "##trace events", below, tables.events, events_);
  }
  if (room.h > 180 && !tables.machines.rows.empty()) {
    const Rect below = room.take_bottom(std::min(table_height(tables.machines), room.h * 0.35F));
    room.take_bottom(8);
    draw_table(ctx, "##machines", below, tables.machines, machines_);
  }
  const TableHit hit = draw_table(ctx, "##trace facts", room, tables.facts, facts_);
  if (!hit.clicked) return;
  const auto moments = ctx.app.store().moments();
  const std::optional<std::size_t> moment = moment_of(tables.facts, *hit.clicked);
  if (moment && *moment < moments.size()) go_to_moment(ctx.app, moments[*moment]);
}

}  // namespace

std::unique_ptr<View> make_trace_info_view() { return std::make_unique<TraceInfoView>(); }

}  // namespace shardscope::gui
