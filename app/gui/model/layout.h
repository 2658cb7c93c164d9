// The workspace as a tree of splits: presets, where each panel lands, and where the splitters are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/geometry.h"

namespace shardscope::gui {

enum class Axis : std::uint8_t { row, column };  ///< children side by side, or one under the other

struct LayoutNode {
  std::string view;  ///< leaf: name of the panel; empty for a split
  Axis axis = Axis::row;
  float weight = 1;     ///< share of the parent's room beside its siblings
  float fixed = 0;      ///< > 0: this many pixels instead of a share
  float smallest = 80;  ///< pixels
  std::vector<LayoutNode> children;
};

struct PlacedPanel {
  LayoutNode* node = nullptr;  ///< the leaf; its `view` may be changed
  Rect rect;
};
struct PlacedSplitter {
  LayoutNode* parent = nullptr;
  std::size_t index = 0;  ///< between child index and index + 1
  Axis axis = Axis::row;
  Rect rect;
  Rect room;  ///< of the parent
};
struct SolvedLayout {
  std::vector<PlacedPanel> panels;
  std::vector<PlacedSplitter> splitters;
};

inline constexpr float kSplitterWidth = 1;  ///< drawn; the grip is wider

/// Names in the order of the menu: Watch, Step, Memory, Compare, Presentation.
[[nodiscard]] const std::vector<std::string>& layout_names();
/// Throws std::invalid_argument listing the names.
[[nodiscard]] LayoutNode preset_layout(std::string_view name);
/// Type and lanes are this much larger (Presentation).
[[nodiscard]] float layout_zoom(std::string_view name) noexcept;
[[nodiscard]] SolvedLayout solve(LayoutNode& root, Rect room);
/// Moves a splitter by `delta` pixels, keeping every neighbour at its smallest or larger.
void drag_splitter(const PlacedSplitter& splitter, float delta);

}  // namespace shardscope::gui
