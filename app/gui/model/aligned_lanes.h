// The lanes of a step of two runs on the scale of their aligned parts: what lies in a part is moved with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/gui/model/aligned_phases.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Of a run and a depth, in a step; of more the density is drawn.
inline constexpr std::size_t kMostBoxes = 4000;

/// What of a span lies in a part: one that lies in several parts is several boxes.
struct AlignedBox {
  store::Span span;
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the scale
};
/// A row of each run: of its lowest rank.
struct AlignedLane {
  instrumentation::StreamId stream{};
  std::uint8_t depth = 0;
  std::array<std::vector<AlignedBox>, 2> boxes{};  ///< of A and of B, by begin
  std::array<std::size_t, 2> spans{};              ///< in the step
  std::array<bool, 2> too_many{};                  ///< more than kMostBoxes: there are none
};

/// The depths of the compute, gather and reduce lanes that have a span in the step of either run, outer ones
/// first: both runs have the same rows, so that a depth is compared with itself.
[[nodiscard]] std::vector<AlignedLane> aligned_lanes(const store::Store& a, const store::StepRow& step_of_a,
                                                     const store::Store& b, const store::StepRow& step_of_b,
                                                     std::span<const AlignedPart> parts);

/// Which of these lanes are drawn where there is room for `rows` of them: the innermost depths of the
/// computation go first, then those of the others; the outermost depth of each stream stays. Indexes,
/// ascending.
[[nodiscard]] std::vector<std::size_t> lanes_in(std::span<const AlignedLane> lanes, std::size_t rows);

}  // namespace shardscope::gui
