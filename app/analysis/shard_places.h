// Where the shards of a recorded run rest between uses (docs/zero.md P6).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "instrumentation/run_tables.h"
#include "runtime/plan/offload.h"

namespace shardscope::analysis {

/// How a shard rests: the place that DeepSpeed's `final_location` and `remote_device` come to.
struct ShardPlace {
  plan::ShardPlace place = plan::ShardPlace::device;
  bool pinned = false;  ///< on the host
  bool int8 = false;    ///< zero_quantized_nontrainable_weights
  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

/// Where each parameter's shards are kept, by the settings of the run and the decisions that the engine
/// places shards by. Nothing below stage 3, and of a run whose settings or sizes no engine could have had:
/// the list is empty.
[[nodiscard]] std::vector<ShardPlace> shard_rests(const instrumentation::RunTables& tables);
/// The same for one.
[[nodiscard]] std::optional<ShardPlace> shard_rest(const instrumentation::RunTables& tables,
                                                   std::uint32_t param);

}  // namespace shardscope::analysis
