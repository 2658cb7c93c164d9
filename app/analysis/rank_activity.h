// What one rank did in a window of time, lane by lane, as disjoint classes: what the partition of time, the
// critical path and the blame for waiting are computed from. Definitions: metrics.md 2.2 and 2.12.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// A collective as one rank took part in it.
struct Participation {
  std::uint64_t instance = 0;   ///< alike on every rank: instance_of() in communication.h
  Interval at;                  ///< from where this rank began it to its end
  std::int64_t entered_ns = 0;  ///< when every rank had entered; 0: not recorded
  instrumentation::CollectiveOp op{};
  instrumentation::StreamId stream{};
  std::uint32_t id = instrumentation::kNoId;  ///< of the gather or bucket
};

struct RankActivity {
  std::uint32_t rank = 0;
  Interval window;
  IntervalSet paused, checkpoint;
  IntervalSet missing;  ///< events are: nothing of it is in the classes below
  IntervalSet device;   ///< computes
  IntervalSet compute;  ///< that, or the CPU optimizer of offloaded states
  IntervalSet comm, copy;
  IntervalSet data;                          ///< computation waits for its micro-batch
  IntervalSet forward, backward, optimizer;  ///< phases; what they overlap of `device` is theirs
  std::vector<Participation> collectives;
  bool known = false;  ///< whether what the rank computed was recorded: else only pauses and checkpoints are
};

[[nodiscard]] RankActivity activity_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                       std::int64_t end_ns);
/// Parts of the updates on the CPU in which it computes nothing: their states are on the way from or to NVMe.
[[nodiscard]] IntervalSet update_waits(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                       std::int64_t end_ns);
[[nodiscard]] TimePartition partition_of(const RankActivity& activity);

}  // namespace shardscope::analysis
