// Lanes of one step of two runs, placed on the common scale of their aligned parts (aligned_phases.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/gui/model/aligned_phases.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Per run and depth in a step; above it only the density of spans is drawn.
inline constexpr std::size_t kMostBoxes = 4000;

/// The piece of a span within one part: a span across several parts has several boxes.
struct AlignedBox {
  store::Span span;
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the common scale
};
/// One depth of one stream, or the waits of all depths of the compute stream, for both runs.
struct AlignedLane {
  instrumentation::StreamId stream{};
  std::uint8_t depth = 0;                          ///< of waits store::Store::kWaits
  std::array<std::vector<AlignedBox>, 2> boxes{};  ///< of A and of B, in order of begin
  std::array<std::size_t, 2> spans{};              ///< number of spans in the parts, for A and B
  std::array<bool, 2> too_many{};                  ///< more than kMostBoxes: `boxes` is empty
  std::array<bool, 2> crowded{};                   ///< too many in the whole step
  [[nodiscard]] bool waits() const noexcept { return depth == store::Store::kWaits; }
  /// Of the same stream, and both waits or neither: one label for both.
  [[nodiscard]] bool belongs_with(const AlignedLane& other) const noexcept {
    return stream == other.stream && waits() == other.waits();
  }
};

/// One lane per depth of each stream but the host's that has a span in the step of either run, outermost
/// first, and one of waits. Both runs have the same rows, so that equal depths are beside each other. `rank`:
/// nullopt: the lowest of each run.
[[nodiscard]] std::vector<AlignedLane> aligned_lanes(const store::Store& a, const store::Store& b,
                                                     std::span<const AlignedPart> parts,
                                                     std::optional<std::uint32_t> rank = std::nullopt);
/// Reads the crowded lanes again for the visible part of the step, where fewer spans may be. No effect on the
/// others.
void see_crowded(std::vector<AlignedLane>& lanes, const store::Store& a, const store::Store& b,
                 std::span<const AlignedPart> visible, std::optional<std::uint32_t> rank = std::nullopt);

/// Indexes (ascending) of the lanes to draw when only `rows` fit: the innermost compute depths are
/// dropped first, then those of the other streams. The outermost depth of each stream and the waits are
/// always kept.
[[nodiscard]] std::vector<std::size_t> lanes_in(std::span<const AlignedLane> lanes, std::size_t rows);

}  // namespace shardscope::gui
