// View settings of the timeline, saved between sessions: hidden classes, lane height, target duration of a
// step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::gui {

enum class ItemClass : std::uint8_t {
  modules,     ///< module spans
  waits,       ///< the lane of waits, and waits in the compute lane
  gathers,     ///< the lane of gathers
  kernels,     ///< kernel spans on the compute lane
  gpu,         ///< the lanes of GPU streams
  marks,       ///< search hits, arrows, marks of late and early gathers
  notes,       ///< flags of notes and bookmarks
  transfers,   ///< the lanes of copies, of NVMe and of the host's workers
  own_spans,   ///< spans that the program names itself
  reductions,  ///< the lane of reductions
  steps,       ///< the lane of steps, micro-steps and pauses
  curves,      ///< the rows of curves and counters
};
inline constexpr int kItemClasses = 12;
[[nodiscard]] const char* word(ItemClass what) noexcept;

struct ViewOptions {
  // Pixels.
  static constexpr float kLowest = 12, kHighest = 36, kUsual = 18;
  static constexpr float kLowestCurve = 24, kHighestCurve = 120, kUsualCurve = 36;
  static constexpr std::int64_t kMostStepTarget_ns = 1'000'000'000'000'000'000;
  static constexpr std::uint32_t kMostFollowedSteps = 1000;
  std::uint32_t hidden = 0;  ///< bits by ItemClass
  float lane_height = kUsual;
  float curve_height = kUsualCurve;  ///< height of the curve rows
  std::int64_t step_target_ns = 0;   ///< target without pauses; longer steps are marked. 0: none
  /// Steps in the timeline's range while it follows a live run; 0: the range keeps its length.
  std::uint32_t followed_steps = 0;
  bool memory_linked = true;  ///< the memory curve shows the timeline's range (linked_axes.h)
  bool steps_linked = false;  ///< plots of values per step show the steps of the timeline's range
  [[nodiscard]] bool hides(ItemClass what) const noexcept {
    return (hidden >> static_cast<unsigned>(what) & 1U) != 0;
  }
  void set(ItemClass what, bool shown) noexcept;
  friend bool operator==(const ViewOptions&, const ViewOptions&) = default;
};

/// Whether spans of a kind are hidden in every lane.
[[nodiscard]] bool hides(const ViewOptions& options, instrumentation::EventKind begin_kind) noexcept;
/// "hidden: waits, GPU lanes"; empty if nothing is.
[[nodiscard]] std::string hidden_text(const ViewOptions& options);
/// Serialization for the settings file; ignores unknown and invalid lines.
[[nodiscard]] std::vector<std::string> lines_of(const ViewOptions& options);
void take_line(ViewOptions& options, std::string_view line);

}  // namespace shardscope::gui
