// Boxes of a flame view and their details.
#include <algorithm>
#include <utility>

#include "app/gui/model/flame.h"
#include "app/gui/model/match.h"

namespace shardscope::gui {
namespace {

/// Places the children of a node one after the other, from the node's begin.
class Placing {
 public:
  Placing(const FlameTree& tree, std::optional<std::size_t> rank, std::uint32_t levels, std::int64_t least_ns)
      : tree_(tree), rank_(rank), levels_(levels), least_ns_(std::max<std::int64_t>(least_ns, 1)) {}
  void add(std::uint32_t node, std::uint32_t level, std::int64_t begin_ns) {
    const std::int64_t width = width_of(node);
    if (width <= 0) return;
    frames_.push_back({node, level, begin_ns, width, 0});
    if (level + 1 >= levels_) return;
    FlameFrame fold;
    const auto close = [&] {
      if (fold.folded > 0 && fold.width_ns >= least_ns_) frames_.push_back(fold);
      fold = {};
    };
    std::int64_t at = begin_ns;
    for (const std::uint32_t child : tree_.nodes()[node].children) {
      const std::int64_t ns = width_of(child);
      if (ns <= 0) continue;
      if (ns < least_ns_) {
        if (fold.folded == 0) fold = {child, level + 1, at, 0, 0};
        fold.width_ns += ns;
        ++fold.folded;
      } else {
        close();
        add(child, level + 1, at);
      }
      at += ns;
    }
    close();
  }
  [[nodiscard]] std::vector<FlameFrame> take() { return std::move(frames_); }

 private:
  [[nodiscard]] std::int64_t width_of(std::uint32_t node) const {
    return rank_ ? tree_.total_of(node, *rank_) : tree_.nodes()[node].total_ns;
  }
  const FlameTree& tree_;
  std::optional<std::size_t> rank_;
  std::uint32_t levels_;
  std::int64_t least_ns_;
  std::vector<FlameFrame> frames_;
};

}  // namespace

std::vector<FlameFrame> flame_frames(const FlameTree& tree, std::uint32_t top,
                                     std::optional<std::size_t> rank, std::uint32_t levels,
                                     std::int64_t least_ns) {
  Placing placing(tree, rank, levels, least_ns);
  if (top < tree.nodes().size() && levels > 0) placing.add(top, 0, 0);
  return placing.take();
}

std::uint32_t flame_levels(const FlameTree& tree, std::uint32_t top) {
  if (top >= tree.nodes().size()) return 0;
  std::uint32_t most = 0;
  for (const std::uint32_t child : tree.nodes()[top].children)
    most = std::max(most, flame_levels(tree, child));
  return most + 1;
}

std::string_view flame_stream(const FlameTree& tree, std::uint32_t node) {
  if (tree.query().of == FlameOf::compute) return "compute";
  while (node != 0 && tree.nodes()[node].parent != 0) node = tree.nodes()[node].parent;
  return tree.name(node);
}

bool flame_finds(std::string_view words, std::string_view name, std::string_view stream) {
  if (words.size() >= 2 && words.front() == '"' && words.back() == '"') {
    const std::string_view whole = words.substr(1, words.size() - 2);
    return whole.size() == name.size() && matches(name, whole);
  }
  // The same text as in Find: includes the stream's name.
  return matches(std::string(name) + ' ' + std::string(stream), words);
}

std::int64_t found_ns(const FlameTree& tree, std::uint32_t top, std::string_view words) {
  std::int64_t sum = 0;
  for (const std::uint32_t child : tree.nodes()[top].children) {
    sum += flame_finds(words, tree.name(child), flame_stream(tree, child)) ? tree.nodes()[child].total_ns
                                                                           : found_ns(tree, child, words);
  }
  return sum;
}

std::string folded_stacks(const FlameTree& tree) {
  std::string out;
  for (std::uint32_t node = 1; node < tree.nodes().size(); ++node) {
    const std::int64_t self = tree.nodes()[node].self_ns();
    if (self <= 0) continue;
    bool first = true;
    for (const std::string& name : tree.path(node)) {
      if (!std::exchange(first, false)) out += ';';
      out += name;
    }
    out += ' ' + std::to_string(self) + '\n';
  }
  return out;
}

}  // namespace shardscope::gui
