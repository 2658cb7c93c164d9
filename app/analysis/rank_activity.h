// The activity of one rank in an interval, lane by lane, as disjoint classes: input of the partition of time,
// the critical path and the attribution of waiting. Definitions: metrics.md 2.2 and 2.12.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// The participation of one rank in a collective.
struct Participation {
  std::uint64_t instance = 0;   ///< equal on every rank: instance_of() in communication.h
  Interval at;                  ///< from this rank's begin to its end
  std::int64_t entered_ns = 0;  ///< when every rank had entered; 0: not recorded
  instrumentation::CollectiveOp op{};
  instrumentation::StreamId stream{};
  std::uint32_t id = instrumentation::kNoId;  ///< gather or bucket
  std::uint64_t group = 0;  ///< key in RankActivity::groups; 0: all ranks, or members that are not known
};

struct RankActivity {
  std::uint32_t rank = 0;
  Interval window;
  IntervalSet paused, checkpoint;
  IntervalSet missing;  ///< events are missing; excluded from the classes below
  IntervalSet device;   ///< computation on the device
  IntervalSet compute;  ///< device, or CPU optimizer of offloaded states
  IntervalSet comm, copy;
  IntervalSet data;                          ///< computation waits for its micro-batch
  IntervalSet forward, backward, optimizer;  ///< phases; computation in them is attributed to them
  std::vector<Participation> collectives;
  /// Members of the groups of its collectives, but for that of all ranks; a group has the same key on every
  /// rank.
  std::map<std::uint64_t, std::vector<std::uint32_t>> groups;
  bool known = false;  ///< false: computation was not recorded, and only pauses and checkpoints are known
};

[[nodiscard]] RankActivity activity_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                       std::int64_t end_ns);
/// Parts of CPU updates without computation, while states are transferred from or to NVMe.
[[nodiscard]] IntervalSet update_waits(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                       std::int64_t end_ns);
[[nodiscard]] TimePartition partition_of(const RankActivity& activity);

}  // namespace shardscope::analysis
