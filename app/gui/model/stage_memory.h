// Size of the model states on one rank at stages 0 to 3 by ZeRO's formulas, for this model and world, beside
// the measured size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct StageMemory {
  std::int32_t stage = 0;
  std::string expression;                           ///< "2S + 14S/n"
  double params = 0, gradients = 0, optimizer = 0;  ///< bytes per rank, predicted
  std::optional<std::int64_t> measured;             ///< of a run with this stage: peak over its ranks
  [[nodiscard]] double total() const noexcept { return params + gradients + optimizer; }
};

/// By stage; assumes all states on the device, without offload. `other`: a second open run, or
/// null.
[[nodiscard]] std::array<StageMemory, 4> stage_memory(const store::Store& store,
                                                      const analysis::Summary& summary,
                                                      const store::Store* other,
                                                      const analysis::Summary* other_summary);

}  // namespace shardscope::gui
