#include "app/gui/model/panel_moves.h"

#include <algorithm>

namespace shardscope::gui {

std::optional<std::size_t> place_beside(std::span<const Rect> places, std::size_t from, Side side) {
  const bool sideways = side == Side::left || side == Side::right;
  const bool forward = side == Side::right || side == Side::down;
  struct Extent {
    float begin, end;
  };
  const auto along = [&](const Rect& of) {
    return sideways ? Extent{of.x, of.right()} : Extent{of.y, of.bottom()};
  };
  const auto across = [&](const Rect& of) {
    return sideways ? Extent{of.y, of.bottom()} : Extent{of.x, of.right()};
  };
  const Extent here = along(places[from]), edge = across(places[from]);
  std::optional<std::size_t> best;
  float best_gap = 0, best_shared = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i == from || places[i].empty()) continue;
    const Extent there = along(places[i]), other = across(places[i]);
    const float gap = forward ? there.begin - here.end : here.begin - there.end;
    const float shared = std::min(edge.end, other.end) - std::max(edge.begin, other.begin);
    constexpr float kOverlap = 2;  // places that touch may share a pixel of their border
    if (gap < -kOverlap || shared <= kOverlap) continue;
    if (best && (gap > best_gap + kOverlap || (gap > best_gap - kOverlap && shared <= best_shared))) continue;
    best = i;
    best_gap = gap;
    best_shared = shared;
  }
  return best;
}

}  // namespace shardscope::gui
