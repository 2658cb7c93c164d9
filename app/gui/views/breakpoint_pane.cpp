#include "app/gui/views/breakpoint_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "app/gui/model/names.h"

namespace shardscope::gui {

void BreakpointPane::play(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  for (const Breakpoint& wanted : std::exchange(ctx.ui.breakpoints, {})) {
    if (std::ranges::find(breakpoints_, wanted) == breakpoints_.end()) breakpoints_.push_back(wanted);
  }
  if (app.run->live()) return;
  const Palette& c = ctx.colors();
  room.take_top(4);
  Rect line = room.take_top(24);
  const float w = ctx.button_width("Pause");
  if (ctx.button(line.take_left(w), playback_.playing ? "Pause" : "Play", true,
                 playback_.playing ? Context::Look::primary : Context::Look::plain,
                 "Plays the recording from the cursor; it stops at the breakpoints below")) {
    playback_.playing = !playback_.playing;
    if (playback_.playing && (!app.cursor_ns || *app.cursor_ns >= app.store().end_ns()))
      app.jump_to(app.time.range().begin_ns > 0 && app.cursor_ns
                      ? 0
                      : std::max<std::int64_t>(0, app.time.range().begin_ns));
  }
  line.take_left(8);
  ctx.canvas.text_in(line.take_left(std::min(line.w, ctx.canvas.width("speed", Font::small) + 6)), "speed",
                     c.muted, Font::small);
  if (line.w > 120) {
    const Rect slider = line.take_left(std::min(200.0F, line.w * 0.5F));
    ImGui::PushFont(ctx.canvas.fonts().of(Font::mono_small), line_height(Font::mono_small));
    ImGui::SetCursorScreenPos({slider.x, slider.y + 1});
    ImGui::SetNextItemWidth(slider.w);
    float ms_per_s = static_cast<float>(playback_.speed * 1e3);
    if (ImGui::SliderFloat("##speed", &ms_per_s, 0.01F, 10'000, "%.3g ms per second",
                           ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
      playback_.speed = static_cast<double>(ms_per_s) * 1e-3;
    ImGui::PopFont();
    line.take_left(8);
  }
  if (!breakpoints_.empty() && line.w > ctx.button_width("To the next breakpoint") &&
      ctx.button(line.take_left(ctx.button_width("To the next breakpoint")), "To the next breakpoint")) {
    to_next_hit(app);
  }
  const double passed = last_seconds_ > 0 ? std::min(0.25, ctx.seconds - last_seconds_) : 0;
  last_seconds_ = ctx.seconds;
  if (!playback_.playing) return;
  ctx.moving = true;
  const std::int64_t from = app.now_ns();
  const std::int64_t to = playback_.advance(from, passed, app.store().end_ns());
  const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, from, to);
  if (hit) {
    playback_.playing = false;
    hit_ = hit->which;
  }
  app.cursor_ns = hit ? hit->at_ns : to;
  if (!app.time.range().contains(*app.cursor_ns))
    app.time.set({*app.cursor_ns, *app.cursor_ns + app.time.range().length()}, app.store().end_ns());
}

void BreakpointPane::to_next_hit(AppState& app) {
  const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, app.now_ns(), app.store().end_ns());
  none_left_ = !hit;
  if (!hit) return;
  hit_ = hit->which;
  app.jump_to(hit->at_ns);
}

void BreakpointPane::watch_live(AppState& app) {
  if (!app.run->live()) return;
  const std::int64_t end = app.store().end_ns();
  if (watched_ns_ > 0 && end > watched_ns_ && !app.paused()) {
    if (const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, watched_ns_, end)) {
      hit_ = hit->which;
      app.pause();
    }
  }
  watched_ns_ = end;
}

void BreakpointPane::draw(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  ctx.section(room,
              none_left_ && !breakpoints_.empty() ? "Breakpoints: none is hit from here on" : "Breakpoints");
  const float rows = static_cast<float>(breakpoints_.size()) + 1;
  const Rect area = room.take_top(std::min(26 * rows, std::max(52.0F, room.h * 0.22F)));
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {6, 3});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6, 3});
  ImGui::SetCursorScreenPos({area.x, area.y});
  if (ImGui::BeginChild("##breakpoints", {area.w, area.h})) {
    std::optional<std::size_t> removed;
    for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      ImGui::Checkbox("##enabled", &breakpoints_[i].enabled);
      ImGui::SameLine();
      const std::string text = text_of(app.store(), breakpoints_[i]) + (hit_ == i ? "  (stopped here)" : "");
      ImGui::TextUnformatted(text.c_str());
      ImGui::SameLine(std::max(0.0F, area.w - 34));
      if (ImGui::SmallButton("x")) removed = i;
      ImGui::PopID();
    }
    if (removed) {
      breakpoints_.erase(breakpoints_.begin() + static_cast<std::ptrdiff_t>(*removed));
      hit_.reset();
    }
    add_line(app.store());
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

void BreakpointPane::add_line(const store::Store& store) {
  ImGui::SetNextItemWidth(150);
  if (ImGui::BeginCombo("##kind", word(next_.kind))) {
    for (int i = 0; i < kBreakKinds; ++i) {
      const auto kind = static_cast<BreakKind>(i);
      if (ImGui::Selectable(word(kind), kind == next_.kind)) {
        next_ = {kind, ev::kNoId, kind == BreakKind::live_elements ? 1e6 : 1.0, true};
        if (kind == BreakKind::step) next_.id = 0;
      }
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  ImGui::BeginDisabled(!choose(store));
  if (ImGui::Button("Add") && std::ranges::find(breakpoints_, next_) == breakpoints_.end())
    breakpoints_.push_back(next_);
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
  if (next_.kind == BreakKind::step) {
    int step = static_cast<int>(next_.id);
    ImGui::SetNextItemWidth(100);
    if (ImGui::InputInt("##step", &step)) next_.id = static_cast<std::uint32_t>(std::max(0, step));
    ImGui::SameLine();
  } else if (*threshold_unit(next_.kind) != 0) {
    ImGui::SetNextItemWidth(90);
    ImGui::InputDouble("##threshold", &next_.threshold, 0, 0, "%.6g");
    ImGui::SameLine();
    ImGui::TextDisabled("%s", threshold_unit(next_.kind));
    ImGui::SameLine();
  }
  return true;
}

}  // namespace shardscope::gui
