// Workspace presets as trees of splits (assets/layouts.json), and the initial size of each part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/geometry.h"

namespace shardscope::gui {

enum class Axis : std::uint8_t { row, column };  ///< children side by side, or stacked

struct LayoutNode {
  std::string view;  ///< leaf: name of the panel; empty for a split
  Axis axis = Axis::row;
  float weight = 1;     ///< share of the parent's size relative to its siblings
  float smallest = 80;  ///< pixels
  std::vector<LayoutNode> children;
};

/// Names in the order of the menu: Watch, Step, Memory, Compare, Presentation, Lecture.
[[nodiscard]] const std::vector<std::string>& layout_names();
/// Throws std::invalid_argument that lists the names.
[[nodiscard]] LayoutNode preset_layout(std::string_view name);
/// Scale factor for text and lanes (Presentation, Lecture).
[[nodiscard]] float layout_zoom(std::string_view name) noexcept;
/// Widths (Axis::row) or heights of a split's children: by weight, at least `smallest` where they fit; the
/// sum is the size of `room`.
[[nodiscard]] std::vector<float> child_sizes(const LayoutNode& node, const Rect& room);

}  // namespace shardscope::gui
