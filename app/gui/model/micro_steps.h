// Micro-steps of a step, for the step ruler.
#pragma once

#include <cstdint>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct MicroStep {
  std::uint32_t number = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< end_ns: where open, the end of the step or of what is known
};
/// In order of begin, of the step's lowest recorded rank; empty where the step has one or none were recorded.
[[nodiscard]] std::vector<MicroStep> micro_steps_of(const store::Store& store, const store::StepRow& step);

}  // namespace shardscope::gui
