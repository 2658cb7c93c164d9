// A step of two runs on one scale: from its begin, or phase by phase or module by module, so that what took
// longer in one run does not shift what comes after it. The same phases as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/gui/model/table.h"
#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

enum class AlignBy : std::uint8_t { step, phase, module };
/// Of more phases or modules in a step none is aligned with another: the table of their pairs takes too long.
inline constexpr std::size_t kMostAligned = 500;

/// A stretch that begins at the same place of the scale in both runs.
struct AlignedPart {
  std::string name;                       ///< of the phase or module; empty: what lies between two
  TimeRange a, b;                         ///< on each run's own time; empty where it has nothing there
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the scale: that of the longer one
};
/// Phases and modules are those of the compute stream of each run's lowest rank, the same ones in the same
/// order; what is in one run only belongs to what lies between. Of modules, with their pass, those of the
/// level of nesting at which the most are in both runs, and where these are as many at several, of the
/// innermost. `why_not`: is set where nothing can be aligned.
[[nodiscard]] std::vector<AlignedPart> align_steps(const store::Store& a, const store::StepRow& step_of_a,
                                                   const store::Store& b, const store::StepRow& step_of_b,
                                                   AlignBy by, std::string* why_not = nullptr);

/// Time of phases per step, mean over the latest `most_steps` ended steps of each run's lowest rank, in the
/// order in which they come, and what of a step lies outside of them.
[[nodiscard]] Table phase_table(const store::Store& a, const store::Store& b, std::size_t most_steps);

}  // namespace shardscope::gui
