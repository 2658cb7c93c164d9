#include "app/gui/model/layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "assets/assets.h"

namespace shardscope::gui {
namespace {

struct Layout {
  std::string name;
  float zoom = 1;
  LayoutNode root;
};

LayoutNode node_of(const nlohmann::json& json) {
  LayoutNode node;
  node.view = json.value("view", "");
  node.axis = json.value("axis", "row") == "row" ? Axis::row : Axis::column;
  node.weight = json.value("weight", 1.0F);
  node.smallest = json.value("smallest", 80.0F);
  for (const auto& child : json.value("children", nlohmann::json::array()))
    node.children.push_back(node_of(child));
  return node;
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> known = [] {
    std::vector<Layout> out;
    for (const auto& json : nlohmann::json::parse(assets::layouts))
      out.push_back({json.at("name").get<std::string>(), json.value("zoom", 1.0F), node_of(json.at("root"))});
    return out;
  }();
  return known;
}

const Layout* layout_of(std::string_view name) {
  const auto at = std::ranges::find(layouts(), name, &Layout::name);
  return at == layouts().end() ? nullptr : &*at;
}

}  // namespace

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Layout& layout : layouts()) out.push_back(layout.name);
    return out;
  }();
  return names;
}

LayoutNode preset_layout(std::string_view name) {
  if (const Layout* layout = layout_of(name)) return layout->root;
  std::string known;
  for (const Layout& layout : layouts()) known += (known.empty() ? "" : ", ") + layout.name;
  throw std::invalid_argument("layout '" + std::string(name) + "' is not known; use one of " + known);
}

float layout_zoom(std::string_view name) noexcept {
  const Layout* layout = layout_of(name);
  return layout != nullptr ? layout->zoom : 1.0F;
}

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
