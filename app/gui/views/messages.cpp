// Messages of ranks and the collector by time, rank and severity, with a filter.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/format.h"
#include "app/gui/model/message_rows.h"
#include "app/gui/views/imgui_text.h"
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
  void filters(Context& ctx, Rect& room);

  Table table_;
  std::vector<std::size_t> of_row_;  ///< by row: index of its message
  std::size_t seen_ = SIZE_MAX;      ///< number of messages in the table
  std::uint64_t run_ = 0;            ///< Session::number()
  std::array<char, 128> words_{};
  std::array<char, 12> rank_{};
  int least_ = 0, source_ = 0;
  std::optional<MessageFilter> made_;  ///< filter of the table
  TableState state_;
};

/// In as many lines as the panel's width needs.
void MessagesView::filters(Context& ctx, Rect& room) {
  constexpr float kLine = 28, kGap = 8;
  const FontScope font(ctx.canvas.fonts(), Font::small);
  Rect line{room.x, room.y, room.w, 0};
  const auto place = [&](float width) {
    width = std::min(width, room.w);
    if (line.h == 0 || line.w < width) line = room.take_top(kLine);
    ImGui::SetCursorScreenPos({line.x, line.y + 2});
    ImGui::SetNextItemWidth(width);
    line.take_left(std::min(line.w, width + kGap));
  };
  place(std::min(240.0F, std::max(140.0F, room.w * 0.5F)));
  ImGui::InputTextWithHint("##filter", "words in the text", words_.data(), words_.size());
  place(130);
  ImGui::Combo("##least", &least_, "all\0warnings and errors\0errors\0");
  place(110);
  ImGui::Combo("##source", &source_, "every source\0ranks\0collector\0commands\0");
  item_tip("From a rank, from the run's collector, or a command of a viewer");
  place(72);
  ImGui::InputTextWithHint("##rank", "rank", rank_.data(), rank_.size(), ImGuiInputTextFlags_CharsDecimal);
  item_tip("Only messages of this rank; empty: of all");
}

void MessagesView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const auto messages = app.store().messages();
  if (messages.empty()) {
    ctx.empty(room, "No messages",
              "Messages of ranks (a scale lowered, a checkpoint saved, an error) and of the collector are "
              "listed here.");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 6};
  filters(ctx, room);
  MessageFilter filter{
      words_.data(), static_cast<ev::Severity>(least_), static_cast<MessageSource>(source_), {}};
  std::uint32_t rank = 0;
  const char* const end = rank_.data() + std::strlen(rank_.data());
  if (const auto [at, error] = std::from_chars(rank_.data(), end, rank);
      error == std::errc{} && at == end && at != rank_.data())
    filter.rank = rank;
  if (seen_ != messages.size() || run_ != app.run->number() || made_ != filter) {
    seen_ = messages.size();
    run_ = app.run->number();
    of_row_ = matching_messages(messages, filter);
    made_ = std::move(filter);
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
