// One step of two runs on a common scale, aligned at the begin of the step, by phase or by module, so that a
// longer part in one run does not shift the parts after it; and the phases as a table.
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
/// Upper bound on the phases or modules of a step: pairing them takes quadratic time and memory.
inline constexpr std::size_t kMostAligned = 500;

/// A part of the step that begins at the same position of the scale in both runs.
struct AlignedPart {
  std::string name;                       ///< of the phase or module; empty: between two of them
  TimeRange a, b;                         ///< in each run's own time; empty where the run lacks the part
  std::int64_t at_ns = 0, length_ns = 0;  ///< on the common scale; the length of the longer one
};
/// Aligned are the phases or modules on the compute stream of each run's lowest rank that both runs have in
/// the same order; the others belong to the unnamed parts between them. Modules (name and pass) are taken
/// from the nesting level with the most common modules, the innermost one of equals. Sets `why_not` where
/// nothing can be aligned.
[[nodiscard]] std::vector<AlignedPart> align_steps(const store::Store& a, const store::StepRow& step_of_a,
                                                   const store::Store& b, const store::StepRow& step_of_b,
                                                   AlignBy by, std::string* why_not = nullptr);

/// Mean time per step of each phase, in order of execution, and the time outside of all phases; over the
/// latest `most_steps` completed steps of each run's lowest rank.
[[nodiscard]] Table phase_table(const store::Store& a, const store::Store& b, std::size_t most_steps);

}  // namespace shardscope::gui
