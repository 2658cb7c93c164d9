// Find: everything in the run with these words in its name, within a time range; and statistics of the spans.
#include <algorithm>
#include <array>
#include <optional>

#include "app/gui/model/finder.h"
#include "app/gui/model/found_rows.h"
#include "app/gui/views/find_bar.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/statistics_pane.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

/// Below this width one line of figures above the list; the panel Statistics shows all.
constexpr float kWide = 860;

class FindView final : public View {
 public:
  std::string_view name() const override { return "find"; }
  std::string_view title() const override { return "Find"; }
  void header(Context& ctx, Rect& room) override {
    find_buttons(ctx, room);
    if (room.w > 100 && ctx.button_right(room, "Statistics", true, Context::Look::plain,
                                         "Histogram and groups in a panel of their own"))
      ctx.ui.show_panel = "statistics";
  }
  void draw(Context& ctx, Rect room) override;

 private:
  void results(Context& ctx, const Rect& room);
  void go_to_row(Context& ctx, std::size_t row);
  void follow_sorting(Finder& find) const;

  FoundRows found_;
  TableState state_;
  std::optional<std::size_t> chosen_;  ///< row
  HitRef gone_to_{UINT32_MAX, 0};
  bool entered_ = false;  ///< Enter was pressed before there were rows
  StatisticsPane pane_{"found"};
};

void FindView::go_to_row(Context& ctx, std::size_t row) {
  chosen_ = row;
  const NameHit* const name = found_.go_to(ctx.app, row);
  if (name != nullptr && name->kind == NameKind::finding) ctx.ui.show_panel = "findings";
}

/// With more hits than rows, the search selects rows by the table's sort order.
void FindView::follow_sorting(Finder& find) const {
  static constexpr std::array kOrders{HitOrder::begin, HitOrder::begin, HitOrder::rank, HitOrder::begin,
                                      HitOrder::time,  HitOrder::self,  HitOrder::step};
  const std::size_t column = state_.sorted_column.value_or(0);
  find.order = kOrders[std::min(column, kOrders.size() - 1)];
  find.descending = column >= 2 && state_.descending;
}

void FindView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (app.store().ranks().empty()) {
    ctx.empty(
        room, "Nothing to search yet",
        "Spans, steps, ranks, modules, parameters and findings are found here by words in their names.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 6};
  int moved = 0;
  if (find_line(ctx, room, moved)) entered_ = true;
  find_filter(ctx, room);
  if (found_.refresh(app, ImGui::GetTime())) chosen_.reset();
  const std::vector<std::size_t>& order = state_.order;
  if (moved != 0 && !order.empty()) {
    const auto at = chosen_ ? std::ranges::find(order, *chosen_) : order.end();
    const auto index = at == order.end() ? (moved > 0 ? -1 : 0) : at - order.begin();
    chosen_ =
        order[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index + moved, 0, std::ssize(order) - 1))];
    state_.scroll_to = chosen_;
  }
  if (room.w >= kWide) {
    Rect right = room.take_right(std::clamp(room.w * 0.46F, 320.0F, 640.0F));
    ctx.canvas.vertical(right.x + 4, right.y + 2, right.h - 4, ctx.colors().line);
    right.take_left(14);
    pane_.draw(ctx, right);
  } else {
    pane_.line(ctx, room);
  }
  results(ctx, room);
}

void FindView::results(Context& ctx, const Rect& place) {
  Finder& find = ctx.app.find;
  Rect room = place;
  const Table& table = found_.table();
  if (table.rows.empty()) {
    if (find.search.done()) {
      entered_ = false;
      ctx.empty(room, "Nothing found",
                find.scope == FindScope::run && find.filter.empty()
                    ? "Every word must be in the name, whatever its case. In quotation marks: the whole name."
                    : "Nothing in this range and filter. Search the whole run, or remove a filter.");
    }
    return;
  }
  if (find.rows.accepted() > found_.hits().size()) {
    const Rect foot = room.take_bottom(18);
    ctx.canvas.text_in(foot, "The first 1\u00a0000 as sorted; F3 goes through all.", ctx.colors().muted,
                       Font::small);
  }
  // F3 selects the next row.
  if (find.at && find.at->ref != gone_to_) {
    gone_to_ = find.at->ref;
    if (const auto row = found_.row_of(gone_to_)) state_.scroll_to = chosen_ = row;
  }
  TableOptions options;
  options.chosen = chosen_;
  const TableHit hit = draw_table(ctx, "##found", room, table, state_, options);
  follow_sorting(find);
  const bool rows_known = state_.order.size() == table.rows.size() && !state_.order.empty();
  if (hit.clicked) {
    go_to_row(ctx, *hit.clicked);
  } else if (entered_ && rows_known && find.search.query().words == find.words &&
             (find.search.done() || find.search.hits() > 0)) {
    entered_ = false;
    go_to_row(ctx, chosen_.value_or(state_.order.front()));
  }
}

}  // namespace

std::unique_ptr<View> make_find_view() { return std::make_unique<FindView>(); }

}  // namespace shardscope::gui
