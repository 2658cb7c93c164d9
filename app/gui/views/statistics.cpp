// Statistics: of the spans found by Find, or of the selection.
#include "app/gui/model/finder.h"
#include "app/gui/views/find_bar.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/statistics_pane.h"

namespace shardscope::gui {
namespace {

class StatisticsView final : public View {
 public:
  std::string_view name() const override { return "statistics"; }
  std::string_view title() const override { return "Statistics"; }
  void header(Context& ctx, Rect& room) override { find_buttons(ctx, room); }
  void draw(Context& ctx, Rect room) override;

 private:
  StatisticsPane pane_{"alone"};
};

void StatisticsView::draw(Context& ctx, Rect room) {
  if (ctx.app.store().ranks().empty()) {
    ctx.empty(room, "Nothing to count", "Spans are counted here when a rank has sent some.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 6};
  find_scope(ctx, room);
  find_filter(ctx, room);
  pane_.draw(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_statistics_view() { return std::make_unique<StatisticsView>(); }

}  // namespace shardscope::gui
