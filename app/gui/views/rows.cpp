#include "app/gui/views/rows.h"

#include <imgui.h>

#include <utility>

#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
namespace {

constexpr float kEndless = 1e6F;

}  // namespace

ScrollArea::ScrollArea(Context& ctx, const char* id, const Rect& place)
    : ctx_(ctx), place_(place), outside_(ctx.canvas.list()), was_over_(ctx.over_window) {
  ImGui::SetCursorScreenPos({place.x, place.y});
  ImGui::BeginChild(id, {std::max(1.0F, place.w), std::max(1.0F, place.h)}, ImGuiChildFlags_NavFlattened);
  ctx.enter_window();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  room = {at.x, at.y, ImGui::GetContentRegionAvail().x, kEndless};
  top_ = at.y;
}

ScrollArea::~ScrollArea() {
  // What ImGui scrolls over.
  ImGui::SetCursorScreenPos({room.x, top_});
  ImGui::Dummy({1, std::max(1.0F, room.y - top_)});
  ImGui::EndChild();
  ctx_.canvas.draw_on(outside_);
  ctx_.over_window = was_over_;
}

void ScrollArea::scroll_to(float y) { ImGui::SetScrollY(y); }

std::optional<std::size_t> row_list(Context& ctx, const char* id, const Rect& place, std::size_t rows,
                                    float height,
                                    const std::function<void(std::size_t, const Rect&, bool)>& draw) {
  std::optional<std::size_t> chosen;
  bool enter = arrow_enters(id);
  ScrollArea area(ctx, id, place);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      ImGui::PushID(i);
      if (std::exchange(enter, false)) ImGui::SetKeyboardFocusHere();
      if (ImGui::Selectable("##row", false, ImGuiSelectableFlags_None, {area.room.w, height}))
        chosen = static_cast<std::size_t>(i);
      draw(static_cast<std::size_t>(i), {at.x, at.y, area.room.w, height}, ImGui::IsItemHovered());
      ImGui::PopID();
    }
  }
  clipper.End();
  ImGui::PopStyleVar();
  area.room.take_top(height * static_cast<float>(rows));
  return chosen;
}

}  // namespace shardscope::gui
