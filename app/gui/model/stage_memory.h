// What the model states of this model and world take on one rank at stages 0 to 3, by ZeRO's expressions,
// beside what was measured.
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
  double params = 0, gradients = 0, optimizer = 0;  ///< bytes of one rank, predicted
  std::optional<std::int64_t> measured;             ///< of the run that has this stage: peak over its ranks
  [[nodiscard]] double total() const noexcept { return params + gradients + optimizer; }
};

/// By stage; every state on the device, as if nothing was offloaded. `other`: a second run that is open, or
/// null.
[[nodiscard]] std::array<StageMemory, 4> stage_memory(const store::Store& store,
                                                      const analysis::Summary& summary,
                                                      const store::Store* other,
                                                      const analysis::Summary* other_summary);

}  // namespace shardscope::gui
