#include "app/gui/model/layout.h"

#include <algorithm>
#include <stdexcept>

namespace shardscope::gui {
namespace {

LayoutNode leaf(std::string view, float weight, float smallest = 80) {
  LayoutNode node;
  node.view = std::move(view);
  node.weight = weight;
  node.smallest = smallest;
  return node;
}

LayoutNode split(Axis axis, float weight, std::vector<LayoutNode> children, float smallest = 80) {
  LayoutNode node;
  node.axis = axis;
  node.weight = weight;
  node.smallest = smallest;
  node.children = std::move(children);
  return node;
}

/// What is wrong and how the run does stand beside what happened; the Inspector comes with the first selection.
LayoutNode watch() {
  return split(
      Axis::row, 1,
      {split(Axis::column, 1,
             {leaf("timeline", 0.60F, 160),
              split(Axis::row, 0.40F, {leaf("partition", 0.58F, 200), leaf("memory", 0.42F, 200)}, 120)},
             400),
       split(Axis::column, 0.30F, {leaf("findings", 0.5F, 120), leaf("overview", 0.5F, 160)}, 280)});
}

LayoutNode step() {
  return split(
      Axis::row, 1,
      {split(Axis::column, 0.62F, {leaf("partition", 0.50F, 160), leaf("timeline", 0.50F, 160)}, 400),
       leaf("stepper", 0.38F, 320)});
}

LayoutNode memory() {
  return split(Axis::row, 1,
               {split(Axis::column, 1, {leaf("memory", 0.62F, 200), leaf("timeline", 0.38F, 120)}, 400),
                leaf("inspector", 0.21F, 240)});
}

LayoutNode compare() {
  return split(
      Axis::row, 1,
      {leaf("compare", 0.64F, 480),
       split(Axis::column, 0.36F, {leaf("communication", 0.55F, 160), leaf("findings", 0.45F, 120)}, 280)});
}

LayoutNode presentation() {
  return split(Axis::column, 1,
               {split(Axis::row, 0.36F, {leaf("overview", 0.55F, 320), leaf("partition", 0.45F, 240)}, 160),
                split(Axis::row, 0.64F, {leaf("timeline", 0.7F, 320), leaf("memory", 0.3F, 200)}, 160)});
}

}  // namespace

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names{"Watch", "Step", "Memory", "Compare", "Presentation"};
  return names;
}

LayoutNode preset_layout(std::string_view name) {
  if (name == "Watch") return watch();
  if (name == "Step") return step();
  if (name == "Memory") return memory();
  if (name == "Compare") return compare();
  if (name == "Presentation") return presentation();
  throw std::invalid_argument("layout '" + std::string(name) +
                              "' is not known; use one of Watch, Step, Memory, Compare, Presentation");
}

float layout_zoom(std::string_view name) noexcept { return name == "Presentation" ? 1.35F : 1.0F; }

std::vector<float> child_sizes(const LayoutNode& node, const Rect& room) {
  const std::size_t n = node.children.size();
  std::vector<float> sizes(n, 0);
  std::vector<bool> settled(n, false);
  float left = node.axis == Axis::row ? room.w : room.h;
  for (bool again = true; again;) {
    again = false;
    float weight = 0;
    for (std::size_t i = 0; i < n; ++i) weight += settled[i] ? 0 : node.children[i].weight;
    for (std::size_t i = 0; i < n; ++i) {
      if (!settled[i]) sizes[i] = weight > 0 ? left * node.children[i].weight / weight : 0;
    }
    for (std::size_t i = 0; i < n && !again; ++i) {
      if (settled[i] || sizes[i] >= node.children[i].smallest) continue;
      sizes[i] = std::min(node.children[i].smallest, std::max(0.0F, left));
      left -= sizes[i];
      settled[i] = true;
      again = true;
    }
  }
  return sizes;
}

}  // namespace shardscope::gui
