#include "app/gui/views/flame_painter.h"

#include <imgui_internal.h>

#include <algorithm>

#include "app/store/lane.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// Minimum width of a name beside a figure.
constexpr float kLeastName = 60;

}  // namespace

Rgb FlamePainter::color_of(const FlameNode& node) const {
  const Palette& c = ctx_.colors();
  const Meaning meaning = meaning_of(node.kind, node.code);
  if (meaning == Meaning::neutral || node.kind == ev::EventKind::phase_begin)
    return mix(c.panel, c.of(meaning), 0.45F);
  if (node.kind != ev::EventKind::module_begin) return c.of(meaning);
  // As in the timeline: outer modules are paler, backward is darker.
  const Rgb color =
      mix(c.of(meaning), c.panel, std::max(0.0F, 0.50F - 0.12F * static_cast<float>(node.longest.depth)));
  const bool backward = ev::as<ev::EventKind::module_begin>(node.longest).pass == ev::Pass::backward;
  return backward ? mix(color, c.base, 0.22F) : color;
}

void FlamePainter::box(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& place,
                       Look look) {
  const Palette& c = ctx_.colors();
  const FlameNode& node = tree_.nodes()[frame.node];
  const Rect box{place.x, place.y, std::max(1.0F, place.w - 1), place.h - 1};
  const bool over = ctx_.hovered(place);
  if (over) hit_ = Hit{frame.node, frame.folded, rank, frame.width_ns};
  if (box.w >= kNamed && frame.folded == 0) {
    const std::size_t of_rank = rank ? *rank + 1 : 0;
    const Context::KeyItem key = ctx_.key_item(
        place, ImHashData(&of_rank, sizeof of_rank, ImGui::GetID(static_cast<int>(frame.node))));
    if (key.at) {
      at_ = Hit{frame.node, frame.folded, rank, frame.width_ns};
      outlined_ = box;
      if (look == Look::plain) cursor_ = place;
    }
    if (key.chosen) {
      chosen_ = true;
      hit_ = Hit{frame.node, frame.folded, rank, frame.width_ns};
    }
  }
  Rgb color = frame.node == 0 ? c.raised : color_of(node);
  const bool pale =
      !words_.empty() && !flame_finds(words_, tree_.name(frame.node), flame_stream(tree_, frame.node));
  if (look == Look::around || pale) color = mix(color, c.panel, 0.65F);
  if (over) color = mix(color, c.text, 0.12F);
  const bool wait = store::is_wait(node.kind);
  if (frame.folded > 0) {
    // Merged boxes: a neutral colour.
    ctx_.canvas.fill(box, c.muted, 0.22F);
    ctx_.canvas.hatch(box, c.muted, 0.5F, 5);
  } else {
    ctx_.canvas.fill(box, color, wait ? 0.45F : 1.0F, box.w > 6 ? 2.0F : 0.0F);
    if (wait) ctx_.canvas.hatch(box, color, 0.9F, 5);
  }
  const bool selected =
      frame.folded == 0 && frame.node != 0 &&
      (node.module != ev::kNoId && node.kind == ev::EventKind::module_begin
           ? ctx_.app.selection.kind == SelectionKind::module && ctx_.app.selection.module == node.module &&
                 (!ctx_.app.selection.span || ctx_.app.selection.span->code == node.code)
           : ctx_.app.selection.span && ctx_.app.selection.span->kind == node.kind &&
                 ctx_.app.selected_span(node.lane, node.longest));
  if (selected) ctx_.canvas.outline(box, c.text, 1, 2);
  if (box.w < kNamed) return;
  const Rgb ink = frame.folded > 0 || wait ? c.text : text_on(color);
  label(frame, rank, box.inset(5, 0), ink);
}

void FlamePainter::label(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& box, Rgb ink) {
  Rect room = box;
  if (frame.folded > 0) {
    ctx_.canvas.text_in(room, std::to_string(frame.folded) + " more", ink, Font::small);
    return;
  }
  const FlameTimes times = flame_times(tree_, frame.node, rank);
  for (const std::string& text : {times.text(), times.total_text()}) {
    const float width = ctx_.canvas.width(text, Font::mono_small) + 8;
    if (room.w - width < kLeastName) continue;
    ctx_.canvas.text_in(room.take_right(width), text, ink, Font::mono_small, Align::right);
    break;
  }
  const auto chars = static_cast<std::size_t>(std::max(1.0F, room.w / 6.0F));
  const std::string name = flame_label(tree_, frame.node, chars);
  if (ctx_.canvas.readable_in(room.w, name, Font::small)) ctx_.canvas.text_in(room, name, ink, Font::small);
}

void FlamePainter::outline_cursor() {
  if (outlined_) ctx_.canvas.outline(*outlined_, ctx_.colors().accent, 1, 2, 2);
}

void FlamePainter::ground(std::uint32_t node, std::size_t rank, const Rect& place) {
  const Palette& c = ctx_.colors();
  ctx_.canvas.fill(place, mix(node == 0 ? c.raised : color_of(tree_.nodes()[node]), c.panel, 0.7F));
  if (ctx_.hovered(place)) hit_ = Hit{node, 0, rank, 0};
}

}  // namespace shardscope::gui
