// Moving panels without a pointer: what a command asks for, and which place is beside another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "app/gui/model/geometry.h"

namespace shardscope::gui {

enum class Side : std::uint8_t { left, right, up, down };

struct PanelMove {
  enum class What : std::uint8_t {
    over,      ///< a tab of the place on that side; from the last place to that edge of the window
    split,     ///< out of its tabs, into that half of its place
    resize,    ///< right: wider, left: narrower, down: taller, up: shorter
    tear_off,  ///< into a window of its own, and back; no side
  };
  What what{};
  Side side{};
};

/// Index of the place that is next to places[from] on that side: the closest one that lies beside it for the
/// longest part of its edge; nullopt: it is at the edge.
[[nodiscard]] std::optional<std::size_t> place_beside(std::span<const Rect> places, std::size_t from,
                                                      Side side);

}  // namespace shardscope::gui
