// What is written in and said of a box of the flame view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/model/details.h"
#include "app/gui/model/flame.h"

namespace shardscope::gui {

/// Of a node: on a rank, or without one the mean over the ranks that have a compute stream.
struct FlameTimes {
  std::int64_t total_ns = 0, self_ns = 0;
  bool has_inside = false;  ///< something lies in it
  [[nodiscard]] std::string total_text() const;
  /// "1.24 ms, own 0.3 ms"; where all of it is its own, or nothing, that goes without saying.
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] FlameTimes flame_times(const FlameTree& tree, std::uint32_t node,
                                     std::optional<std::size_t> rank);

/// A module's path from the module around it on, shortened from the left to about `most_chars`; its pass only
/// where nothing around says it.
[[nodiscard]] std::string flame_label(const FlameTree& tree, std::uint32_t node, std::size_t most_chars);

/// What lies under the pointer: a node, or neighbours that are too narrow to be drawn one by one.
struct FlamePlace {
  std::uint32_t node = 0;
  std::uint32_t folded = 0;
  std::optional<std::size_t> rank;
  std::int64_t folded_ns = 0;  ///< of all of them
};
/// `top`: the node that has the whole width.
[[nodiscard]] Details flame_details(const FlameTree& tree, std::uint32_t top, const FlamePlace& place);

}  // namespace shardscope::gui
