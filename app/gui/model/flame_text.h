// Labels and tooltips of flame graph boxes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/model/details.h"
#include "app/gui/model/flame.h"

namespace shardscope::gui {

/// Times of a node on one rank, or the mean over the ranks with a compute stream.
struct FlameTimes {
  std::int64_t total_ns = 0, self_ns = 0;
  bool has_inside = false;  ///< has child nodes
  [[nodiscard]] std::string total_text() const;
  /// "1.24 ms, own 0.3 ms"; without the second part when it equals the first or is 0.
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] FlameTimes flame_times(const FlameTree& tree, std::uint32_t node,
                                     std::optional<std::size_t> rank);

/// A module's path relative to the enclosing module, shortened from the left to about `most_chars`; its pass
/// only if no enclosing node names it.
[[nodiscard]] std::string flame_label(const FlameTree& tree, std::uint32_t node, std::size_t most_chars);

/// The box under the pointer: one node, or merged neighbours.
struct FlamePlace {
  std::uint32_t node = 0;
  std::uint32_t folded = 0;
  std::optional<std::size_t> rank;
  std::int64_t folded_ns = 0;  ///< total of the merged nodes
};
/// `top`: the node drawn at full width.
[[nodiscard]] Details flame_details(const FlameTree& tree, std::uint32_t top, const FlamePlace& place);

}  // namespace shardscope::gui
