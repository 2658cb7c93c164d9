// Lanes of one step of two runs, placed on the common scale of their aligned parts (aligned_phases.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/gui/model/aligned_phases.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Per run and depth in a step; above it only the density of spans is drawn.
inline constexpr std::size_t kMostBoxes = 4000;

/// The piece of a span that lies in one part: a span across several parts has several boxes.
struct AlignedBox {
  store::Span span;
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the common scale
};
/// One depth of one stream, for both runs; of each run the lowest rank.
struct AlignedLane {
  instrumentation::StreamId stream{};
  std::uint8_t depth = 0;
  std::array<std::vector<AlignedBox>, 2> boxes{};  ///< of A and of B, in order of begin
  std::array<std::size_t, 2> spans{};              ///< number of spans in the step, for A and B
  std::array<bool, 2> too_many{};                  ///< more than kMostBoxes: `boxes` is empty
};

/// One lane per depth of the compute, gather and reduce streams that has a span in the step of either run,
/// outermost first. Both runs have the same rows, so that equal depths are beside each other.
[[nodiscard]] std::vector<AlignedLane> aligned_lanes(const store::Store& a, const store::StepRow& step_of_a,
                                                     const store::Store& b, const store::StepRow& step_of_b,
                                                     std::span<const AlignedPart> parts);

/// Indexes (ascending) of the lanes to draw when only `rows` fit: the innermost compute depths are
/// dropped first, then those of the other streams. The outermost depth of each stream is always
/// kept.
[[nodiscard]] std::vector<std::size_t> lanes_in(std::span<const AlignedLane> lanes, std::size_t rows);

}  // namespace shardscope::gui
