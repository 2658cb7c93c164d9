// Messages: what ranks and the collector said, by time, rank and severity, with a filter.
#include <algorithm>
#include <array>
#include <cctype>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/format.h"
#include "app/gui/model/message_rows.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class MessagesView final : public View {
 public:
  std::string_view name() const override { return "messages"; }
  std::string_view title() const override { return "Messages"; }
  void draw(Context& ctx, Rect room) override;

 private:
  Table table_;
  std::vector<std::size_t> of_row_;  ///< message of a row
  std::size_t seen_ = SIZE_MAX;      ///< messages that the table is made of
  std::string run_, filter_made_;
  std::array<char, 128> filter_{};
  int least_ = 0, least_made_ = -1;
  TableState state_;
};

void MessagesView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const auto messages = app.store().messages();
  if (messages.empty()) {
    ctx.empty(room, "No messages",
              "What a rank says while it trains (a scale lowered, a checkpoint saved, an error) and what the "
              "collector notices are listed here.");
    return;
  }
  room = {room.x + 8, room.y, room.w - 16, room.h - 6};
  const Rect tools = room.take_top(28);
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::SetCursorScreenPos({tools.x, tools.y + 2});
  ImGui::SetNextItemWidth(std::min(240.0F, tools.w * 0.5F));
  ImGui::InputTextWithHint("##filter", "words in the text", filter_.data(), filter_.size());
  if (tools.w > 380) {
    ImGui::SameLine(0, 8);
    ImGui::SetNextItemWidth(130);
    ImGui::Combo("##least", &least_, "all\0warnings and errors\0errors\0");
  }
  ImGui::PopFont();
  if (seen_ != messages.size() || run_ != app.run->source() || filter_made_ != filter_.data() ||
      least_made_ != least_) {
    seen_ = messages.size();
    run_ = app.run->source();
    filter_made_ = filter_.data();
    least_made_ = least_;
    of_row_ = matching_messages(messages, filter_made_, static_cast<ev::Severity>(least_));
    table_ = message_table(app.store(), of_row_);
  }
  const Rect foot = room.take_bottom(20);
  ctx.canvas.text_in(foot,
                     std::to_string(of_row_.size()) + " of " + std::to_string(messages.size()) + " messages",
                     ctx.colors().muted, Font::small);
  const TableHit hit = draw_table(ctx, "##messages", room, table_, state_);
  if (!hit.clicked) return;
  const store::Message& message = messages[of_row_[*hit.clicked]];
  app.jump_to(message.at_ns);
  if (message.rank != ev::kNoId) app.select_rank(message.rank);
}

}  // namespace

std::unique_ptr<View> make_messages_view() { return std::make_unique<MessagesView>(); }

}  // namespace shardscope::gui
