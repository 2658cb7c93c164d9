// Why: which rank waits in which collective for which ranks, what the rank that has not entered it does, and
// where ranks issued different collectives. The same diagnosis as `shardscope why`.
#include <cstdint>

#include "app/gui/model/format.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class HangView final : public View {
 public:
  std::string_view name() const override { return "why"; }
  std::string_view title() const override { return "Why it hangs"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  std::uint64_t made_ = UINT64_MAX;  ///< diagnosis revision of the table
  std::uint64_t run_ = 0;            ///< Session::number() of the table
  Table table_;
  TableState state_;
};

void HangView::header(Context& ctx, Rect& room) {
  const analysis::Hang& hang = ctx.app.run->why();
  if (ctx.button_right(room, "Copy", !hang.ranks.empty(), Context::Look::plain,
                       "Copies the full diagnosis as text, as `shardscope why` prints it"))
    ImGui::SetClipboardText(analysis::hang_text(hang).c_str());
}

void HangView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const analysis::Hang& hang = app.run->why();
  if (hang.ranks.empty()) {
    ctx.empty(room, hang.text,
              "While a live run hangs, this panel shows which ranks wait in which collective for which rank, "
              "and what that rank is doing.");
    return;
  }
  if (made_ != app.run->why_revision() || run_ != app.run->number()) {
    made_ = app.run->why_revision();
    run_ = app.run->number();
    table_ = hang_table(hang);
  }
  room = {room.x + 12, room.y + 2, room.w - 24, room.h - 8};
  room.take_top(ctx.canvas.paragraph(room, hang.text, hang.hung ? c.text : mix(c.muted, c.text, 0.6F),
                                     hang.hung ? Font::strong : Font::body) +
                8);
  if (room.h < 60) return;
  TableOptions options;
  for (std::size_t row = 0; row < hang.ranks.size(); ++row) {
    if (hang.ranks[row].rank == hang.culprit) options.chosen = row;
  }
  const TableHit hit = draw_table(ctx, "##why", room, table_, state_, options);
  if (!hit.clicked) return;
  app.select_rank(hang.ranks[*hit.clicked].rank);
  app.jump_to(hang.ranks[*hit.clicked].last_event_ns);
}

}  // namespace

std::unique_ptr<View> make_hang_view() { return std::make_unique<HangView>(); }

}  // namespace shardscope::gui
