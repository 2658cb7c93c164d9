// Micro-steps of a step, for the step ruler, and as frames of the timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct AppState;

struct MicroStep {
  std::uint32_t number = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< end_ns: where open, the end of the step or of what is known
};
/// In order of begin, of the step's lowest recorded rank; empty where the step has one or none were recorded.
[[nodiscard]] std::vector<MicroStep> micro_steps_of(const store::Store& store, const store::StepRow& step);
/// True if one of the first steps recorded has several.
[[nodiscard]] bool has_micro_steps(const store::Store& store);

/// A micro-step, or a step that has one or that is shown as a whole.
struct StepFrame {
  std::uint32_t step = 0;
  std::size_t place = 0, of = 1;  ///< within its step; of 1: the whole step
  std::uint32_t number = 0;       ///< of the micro-step: frameworks number them over the run
  TimeRange range;
};
/// The frames within `range`, in order of begin: micro-steps where they are at least `narrowest_ns` long on
/// average, else steps; empty where these are shorter too. Reads at most `most_steps` steps for micro-steps.
[[nodiscard]] std::vector<StepFrame> frames_in(const store::Store& store, TimeRange range,
                                               std::int64_t narrowest_ns, std::size_t most_steps);
/// From long to short, for boxes of all widths: "step 12, micro-step 90, 3 of 8", "micro-step 90, 3 of 8",
/// "3 of 8".
[[nodiscard]] std::vector<std::string> labels_of(const StepFrame& frame);
/// Shows the micro-step after the one at the cursor (`by` 1) or before it (-1), also of the step beside. In
/// steps with one micro-step this is the step. False at the end of the run.
bool go_to_micro_step(AppState& app, int by);

}  // namespace shardscope::gui
