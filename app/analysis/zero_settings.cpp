#include "app/analysis/zero_settings.h"

#include <algorithm>

#include "runtime/config/config.h"

namespace shardscope::analysis {

plan::ZeroConfig zero_of(const instrumentation::RunTables& tables) {
  plan::ZeroConfig zero = config::recorded_zero(tables.config_json);
  zero.stage = static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3));
  return zero;
}

plan::Topology topology_of(const instrumentation::RunTables& tables) noexcept {
  const std::uint32_t world = std::max<std::uint32_t>(tables.world, 1);
  const std::uint32_t node = std::clamp<std::uint32_t>(tables.local_world, 1, world);
  return {world, world % node == 0 ? node : world};
}

}  // namespace shardscope::analysis
