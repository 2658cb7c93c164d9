#include "app/gui/model/layout.h"

#include <cmath>
#include <numeric>
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

LayoutNode watch() {
  return split(
      Axis::row, 1,
      {split(Axis::column, 1,
             {leaf("timeline", 0.60F, 160),
              split(Axis::row, 0.40F, {leaf("partition", 0.58F, 200), leaf("memory", 0.42F, 200)}, 120)},
             400),
       leaf("inspector", 0.21F, 240)});
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

float main_size(Axis axis, const Rect& rect) { return axis == Axis::row ? rect.w : rect.h; }

/// Sizes of the children: fixed ones first, the rest by weight, none under its smallest while there is room.
std::vector<float> child_sizes(const LayoutNode& node, float room) {
  const std::size_t n = node.children.size();
  std::vector<float> sizes(n, 0);
  std::vector<bool> settled(n, false);
  float left = room - kSplitterWidth * static_cast<float>(n - 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (node.children[i].fixed > 0) {
      sizes[i] = std::min(node.children[i].fixed, left);
      left -= sizes[i];
      settled[i] = true;
    }
  }
  for (bool again = true; again;) {
    again = false;
    float weight = 0;
    for (std::size_t i = 0; i < n; ++i) weight += settled[i] ? 0 : node.children[i].weight;
    for (std::size_t i = 0; i < n; ++i) {
      if (settled[i]) continue;
      sizes[i] = weight > 0 ? left * node.children[i].weight / weight : 0;
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

void place(LayoutNode& node, Rect room, SolvedLayout& out) {
  const Rect whole = room;
  if (node.children.empty()) {
    out.panels.push_back({&node, room});
    return;
  }
  const std::vector<float> sizes = child_sizes(node, main_size(node.axis, room));
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const float size = i + 1 == node.children.size() ? main_size(node.axis, room) : std::round(sizes[i]);
    place(node.children[i], node.axis == Axis::row ? room.take_left(size) : room.take_top(size), out);
    if (i + 1 < node.children.size()) {
      const Rect bar =
          node.axis == Axis::row ? room.take_left(kSplitterWidth) : room.take_top(kSplitterWidth);
      out.splitters.push_back({&node, i, node.axis, bar, whole});
    }
  }
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

SolvedLayout solve(LayoutNode& root, Rect room) {
  SolvedLayout out;
  place(root, room, out);
  return out;
}

void drag_splitter(const PlacedSplitter& splitter, float delta) {
  LayoutNode& parent = *splitter.parent;
  LayoutNode& before = parent.children[splitter.index];
  LayoutNode& after = parent.children[splitter.index + 1];
  if (before.fixed > 0 || after.fixed > 0) return;
  const std::vector<float> sizes = child_sizes(parent, main_size(parent.axis, splitter.room));
  const float both = sizes[splitter.index] + sizes[splitter.index + 1];
  const float low = std::min(before.smallest, both);
  const float high = std::max(low, both - after.smallest);
  const float size = std::clamp(sizes[splitter.index] + delta, low, high);
  const float weight = before.weight + after.weight;
  before.weight = weight * size / both;
  after.weight = weight - before.weight;
}

}  // namespace shardscope::gui
