// Each rank's own time over a whole run in bounded memory: a slow rank can be named when its events are
// deleted. docs/recording.md, "What was not kept".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "app/store/own_time.h"

namespace shardscope::store {

/// [Note: stretches of steps]
/// Intervals are the same steps on all ranks, since ranks make steps together: each interval compares like
/// with like, whatever their clocks. They have 2^n steps, with the smallest n for which kMost suffice; as the
/// run grows beyond, each two are merged. So a run of N steps has kMost / 2 to kMost intervals from kMost / 2
/// steps on, and memory and file are bounded by ranks x kMost rows.
///
/// A step number far from the known ones may be damaged: it counts only if the rank's next step
/// follows it. A run that resumes from a checkpoint repeats steps: they are added to the same intervals,
/// which then sum both. Where it resumes before the first interval, others are inserted before it; where by
/// more than 2^20 steps, the table is cleared.
class OwnTimes {
  struct Sum {
    std::uint32_t steps = 0;
    bool changed = false;
    std::int64_t own_ns = 0, waited_ns = 0;
  };

 public:
  static constexpr std::size_t kMost = 512;
  static constexpr std::size_t kBytesOfRank = kMost * sizeof(Sum);  ///< bound per rank

  void add(std::uint32_t rank, const OwnTime& time);
  struct Changes {
    bool all = false;  ///< intervals have changed: these are all rows, earlier ones are void
    std::vector<OwnTimeRow> rows;
  };
  /// Rows that changed since the last call.
  [[nodiscard]] Changes changes();

 private:
  void fold();
  /// Extends the table so that the first interval contains `step`, which is before it.
  void begin_at(std::int64_t step);
  /// Whether the step is near the known ones, or follows an odd one of the rank.
  bool is_sure(std::uint32_t rank, std::int64_t step);

  std::map<std::uint32_t, std::vector<Sum>> ranks_;
  std::map<std::uint32_t, std::int64_t> odd_;  ///< by rank: its last step, if far from the known ones
  /// First step of the first interval, below 0 where that is not filled up to 2^shift_ steps; and the last
  /// measured one.
  std::int64_t first_step_ = 0, last_step_ = 0;
  std::uint32_t shift_ = 0;  ///< intervals have 2^shift_ steps
  bool all_changed_ = false;
};

}  // namespace shardscope::store
