#include "app/gui/views/breakpoint_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "app/gui/model/names.h"
#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {

void BreakpointPane::play(Context& ctx, Rect& room) const {
  AppState& app = ctx.app;
  if (app.run->live()) return;
  const Palette& c = ctx.colors();
  const bool playing = app.breaks.playing();
  room.take_top(4);
  Rect line = room.take_top(24);
  const float w = ctx.button_width("Pause");
  if (ctx.button(line.take_left(w), playing ? "Pause" : "Play", true,
                 playing ? Context::Look::primary : Context::Look::plain,
                 "Plays the recording from the cursor (Space); it stops at the breakpoints below"))
    app.breaks.play(app, !playing);
  line.take_left(8);
  ctx.canvas.text_in(line.take_left(std::min(line.w, ctx.canvas.width("speed", Font::small) + 6)), "speed",
                     c.muted, Font::small);
  if (line.w > 120) {
    const Rect slider = line.take_left(std::min(200.0F, line.w * 0.5F));
    ImGui::PushFont(ctx.canvas.fonts().of(Font::mono_small), line_height(Font::mono_small));
    ImGui::SetCursorScreenPos({slider.x, slider.y + 1});
    ImGui::SetNextItemWidth(slider.w);
    float ms_per_s = static_cast<float>(app.breaks.speed() * 1e3);
    if (ImGui::SliderFloat("##speed", &ms_per_s, 0.01F, 10'000, "%.3g ms per second",
                           ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
      app.breaks.speed() = static_cast<double>(ms_per_s) * 1e-3;
    ImGui::PopFont();
    line.take_left(8);
  }
  if (!app.breaks.list().empty() && line.w > ctx.button_width("To the next breakpoint") &&
      ctx.button(line.take_left(ctx.button_width("To the next breakpoint")), "To the next breakpoint", true,
                 Context::Look::plain, "The next one after the cursor on any rank (F8)"))
    app.breaks.to_next(app);
}

void BreakpointPane::row(AppState& app, std::size_t which, float width,
                         std::optional<std::size_t>& removed) const {
  const Breakpoint& one = app.breaks.list()[which];
  ImGui::PushID(static_cast<int>(which));
  bool enabled = one.enabled;
  if (ImGui::Checkbox("##enabled", &enabled)) app.breaks.enable(which, enabled);
  ImGui::SameLine();
  ImGui::TextUnformatted(app.breaks.text(app.store(), which).c_str());
  std::string state;
  const char* tip = nullptr;
  const auto& stopped = app.breaks.stopped();
  const bool place = one.kind == BreakKind::module || one.kind == BreakKind::param ||
                     one.kind == BreakKind::bucket || one.kind == BreakKind::step;
  if (stopped && stopped->which == which) {
    state = stopped->rank ? "stopped here, rank " + std::to_string(*stopped->rank) : "stopped here";
  } else if (app.run->live() && enabled && app.breaks.at_gate(app.store()) == which) {
    state = "stops exactly here";
    tip = "Every rank stops at this gate.";
  } else if (app.run->live() && enabled) {
    state = "stops at the next gate";
    tip = place ? "The run stops exactly at one place only, the first enabled one of this list. This "
                  "breakpoint is checked against arriving events; after a hit the run stops at its next gate."
                : "Checked against arriving events; after a hit the run stops at its next gate.";
  }
  if (!state.empty()) {
    ImGui::SameLine();
    ImGui::TextDisabled("%s", state.c_str());
    if (tip != nullptr) item_tip("%s", tip);
  }
  ImGui::SameLine(std::max(0.0F, width - 34));
  if (ImGui::SmallButton("x")) removed = which;
  item_tip("Removes the breakpoint");
  ImGui::PopID();
}

void BreakpointPane::draw(Context& ctx, Rect& room, float share) {
  AppState& app = ctx.app;
  const std::size_t count = app.breaks.list().size();
  ctx.section(room, app.breaks.searching() && !app.breaks.playing()
                        ? "Breakpoints: searching for the next hit"
                    : app.breaks.none_left() && count > 0 ? "Breakpoints: no more hits"
                                                          : "Breakpoints, all ranks");
  const float rows = static_cast<float>(count) + 1;
  const Rect area = room.take_top(std::min(26 * rows, std::max(52.0F, room.h * share)));
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {6, 3});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6, 3});
  ImGui::SetCursorScreenPos({area.x, area.y});
  if (ImGui::BeginChild("##breakpoints", {area.w, area.h}, ImGuiChildFlags_NavFlattened)) {
    std::optional<std::size_t> removed;
    for (std::size_t i = 0; i < count; ++i) row(app, i, area.w, removed);
    if (removed) app.breaks.remove(*removed);
    add_line(app);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

void BreakpointPane::add_line(AppState& app) {
  const store::Vocabulary& words = words_of(app.store());
  ImGui::SetNextItemWidth(150);
  if (ImGui::BeginCombo("##kind", word(next_.kind, words), ImGuiComboFlags_HeightLarge)) {
    for (int i = 0; i < kBreakKinds; ++i) {
      const auto kind = static_cast<BreakKind>(i);
      if (ImGui::Selectable(word(kind, words), kind == next_.kind)) {
        next_ = {kind, ev::kNoId, kind == BreakKind::live_elements ? 1e6 : 1.0, true};
        if (kind == BreakKind::step) next_.id = 0;
      }
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  ImGui::BeginDisabled(!choose(app.store()));
  if (ImGui::Button("Add")) app.breaks.add(app.store(), next_);
  ImGui::EndDisabled();
}

bool BreakpointPane::choose(const store::Store& store) {
  const auto pick = [&](const auto& all, auto&& name) {
    const bool chosen = next_.id != ev::kNoId;
    ImGui::SetNextItemWidth(200);
    const std::string shown = chosen ? name(next_.id) : std::string("which?");
    if (ImGui::BeginCombo("##which", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
      for (const auto& one : all) {
        ImGui::PushID(static_cast<int>(one.id));
        if (ImGui::Selectable(name(one.id).c_str(), one.id == next_.id)) next_.id = one.id;
        ImGui::PopID();
      }
      ImGui::EndCombo();
    }
    ImGui::SameLine();
    return chosen;
  };
  if (next_.kind == BreakKind::module && store.has_tables())
    return pick(store.tables().modules, [&](std::uint32_t id) { return module_name(store, id); });
  if (next_.kind == BreakKind::param && store.has_tables())
    return pick(store.tables().params, [&](std::uint32_t id) { return param_name(store, id); });
  if (next_.kind == BreakKind::bucket) {
    bool any = next_.id == ev::kNoId;
    if (ImGui::Checkbox("any", &any)) next_.id = any ? ev::kNoId : 0;
    item_tip("Off: one, by its number as in the panel Buckets");
    ImGui::SameLine();
    if (any) return true;
    int bucket = static_cast<int>(next_.id);
    ImGui::SetNextItemWidth(100);
    if (ImGui::InputInt("##bucket", &bucket)) next_.id = static_cast<std::uint32_t>(std::max(0, bucket));
    ImGui::SameLine();
  } else if (next_.kind == BreakKind::step) {
    int step = static_cast<int>(next_.id);
    ImGui::SetNextItemWidth(100);
    if (ImGui::InputInt("##step", &step)) next_.id = static_cast<std::uint32_t>(std::max(0, step));
    ImGui::SameLine();
  } else if (*threshold_unit(next_.kind) != 0) {
    ImGui::SetNextItemWidth(110);
    ImGui::InputDouble("##threshold", &next_.threshold, 0, 0,
                       next_.kind == BreakKind::live_elements ? "%.0f" : "%.6g");
    ImGui::SameLine();
    ImGui::TextDisabled("%s", threshold_unit(next_.kind));
    ImGui::SameLine();
  }
  return true;
}

}  // namespace shardscope::gui
