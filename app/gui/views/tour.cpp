// The tour: a frame around a place, and a card with its explanation.
#include "app/gui/model/tour.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/gui/views/imgui_text.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

constexpr float kCardWidth = 360, kCardHeight = 190;

/// Position of the card: below the place, or inside if there is no room.
ImVec2 card_at(const Rect& place, const Rect& window) {
  constexpr float kGap = 10;
  float x = place.x + 24;
  float y = place.bottom() + kGap;
  if (y + kCardHeight > window.bottom()) y = place.y - kCardHeight - kGap;
  if (y < window.y) {
    x = place.x > kCardWidth + kGap ? place.x - kCardWidth - kGap : place.right() + kGap;
    y = place.y + 40;
    if (x + kCardWidth > window.right()) x = place.x + 24;
  }
  return {std::clamp(x, window.x + 8, std::max(window.x + 8, window.right() - kCardWidth - 8)),
          std::clamp(y, window.y + 8, std::max(window.y + 8, window.bottom() - kCardHeight - 8))};
}

}  // namespace

void Workspace::sample(Context& ctx) {
  if (std::exchange(ctx.ui.sample, false) && !sample_.running()) {
    sample_.start();
    ctx.ui.say("Simulating a run to look at");
  }
  if (sample_.running()) ctx.moving = true;
  const auto outcome = sample_.take();
  if (!outcome) return;
  if (!outcome->problem.empty()) {
    ctx.ui.say("No sample run: " + outcome->problem, true);
    return;
  }
  ctx.app.open_request = {.source = outcome->recording, .key_file = {}, .second = false, .temporary = true};
  ctx.ui.tour = 0;
}

void Workspace::tour(Context& ctx) {
  if (!ctx.ui.tour) return;
  const auto stops = tour_stops();
  const std::size_t at = std::min(*ctx.ui.tour, stops.size() - 1);
  const TourStop& stop = stops[at];
  if (tour_shown_ != at) {
    tour_shown_ = at;
    if (at == 0) {
      ctx.app.set_layout("Watch");
      ctx.ui.say({});  // removes the offer of a tour
    }
    if (registry_.find(stop.panel) != nullptr) ctx.ui.show_panel = std::string(stop.panel);
    ImGui::SetNextWindowFocus();
  }
  const auto placed = std::ranges::find(placed_, stop.panel, &PlacedForDump::name);
  const Rect place = placed != placed_.end() ? placed->rect : ctx.window;
  ctx.canvas.draw_on(ImGui::GetForegroundDrawList());
  ctx.canvas.outline(place.inset(1, 1), ctx.colors().accent, 1, 2, 4);
  ImGui::SetNextWindowPos(card_at(place, ctx.window));
  ImGui::SetNextWindowSize({kCardWidth, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {14, 12});
  if (ImGui::Begin("##tour", nullptr,
                   ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                       ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove)) {
    {
      const FontScope strong(ctx.canvas.fonts(), Font::strong);
      ImGui::TextUnformatted(stop.title.data(), stop.title.data() + stop.title.size());
    }
    const FontScope body(ctx.canvas.fonts(), Font::body);
    ImGui::PushTextWrapPos(kCardWidth - 14);
    ImGui::TextUnformatted(stop.text.data(), stop.text.data() + stop.text.size());
    ImGui::PopTextWrapPos();
    ImGui::Spacing();
    ImGui::TextDisabled("%d of %d", static_cast<int>(at) + 1, static_cast<int>(stops.size()));
    const bool last = at + 1 == stops.size();
    ImGui::SameLine(kCardWidth - 214);
    if (ImGui::Button("Leave", {60, 0})) ctx.ui.tour.reset();
    ImGui::SameLine();
    ImGui::BeginDisabled(at == 0);
    if (ImGui::Button("Back", {60, 0})) ctx.ui.tour = at - 1;
    ImGui::EndDisabled();
    ImGui::SameLine();
    // Not while ImGui's keyboard cursor is visible, as Enter then presses its item.
    const bool entered =
        !ImGui::GetIO().WantTextInput && !ImGui::GetIO().NavVisible &&
        (ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false));
    if (ImGui::Button(last ? "Done" : "Next", {60, 0}) || entered) {
      if (last)
        ctx.ui.tour.reset();
      else
        ctx.ui.tour = at + 1;
    }
  }
  ImGui::End();
  ImGui::PopStyleVar();
  if (!ctx.ui.tour) tour_shown_.reset();
}

}  // namespace shardscope::gui
