#include "app/analysis/zero_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "runtime/config/config.h"

namespace shardscope::analysis {

plan::ZeroConfig zero_of(const instrumentation::RunTables& tables) {
  plan::ZeroConfig zero = config::recorded_zero(tables.config_json);
  zero.stage = static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3));
  return zero;
}

bool names_zero_settings(const std::string& config_json) {
  const auto config = parse_foreign(config_json);
  return config.is_object() && config.contains("zero_optimization") &&
         config["zero_optimization"].is_object();
}

plan::Topology topology_of(const instrumentation::RunTables& tables) noexcept {
  const std::uint32_t world = std::max<std::uint32_t>(tables.world, 1);
  const std::uint32_t node = std::clamp<std::uint32_t>(tables.local_world, 1, world);
  return {world, world % node == 0 ? node : world};
}

}  // namespace shardscope::analysis
