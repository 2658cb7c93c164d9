// Where the shards of a recorded run are stored between uses (docs/zero.md P6).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "instrumentation/run_tables.h"
#include "runtime/plan/offload.h"

namespace shardscope::analysis {

/// The place of a shard, as resolved from DeepSpeed's `final_location` and `remote_device`.
struct ShardPlace {
  plan::ShardPlace place = plan::ShardPlace::device;
  bool pinned = false;  ///< if on the host
  bool int8 = false;    ///< zero_quantized_nontrainable_weights
  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

/// The place of each parameter's shards, from the run's settings and the engine's own placement decisions.
/// Empty below stage 3, and if the settings or sizes are not valid for the engine.
[[nodiscard]] std::vector<ShardPlace> shard_locations(const instrumentation::RunTables& tables);
/// The place of one parameter's shards; nullopt if unknown.
[[nodiscard]] std::optional<ShardPlace> shard_location(const instrumentation::RunTables& tables,
                                                       std::uint32_t param);

/// The place of optimizer states, from `offload_optimizer`.
struct OptimizerPlace {
  plan::ShardPlace place = plan::ShardPlace::device;
  bool pinned = false;  ///< if on the host
  double share = 1;     ///< of the sub-groups (stage 3, `ratio`); the others' states are on the device
};
/// nullopt: the run's settings are not known.
[[nodiscard]] std::optional<OptimizerPlace> optimizer_place(const instrumentation::RunTables& tables);

}  // namespace shardscope::analysis
