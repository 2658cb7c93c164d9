// Each rank's own time over a whole run in little room: a rank that became slow is named when its events are
// gone. docs/recording.md, "What was not kept".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "app/store/own_time.h"

namespace shardscope::store {

/// [Note: stretches of steps]
/// All ranks are cut at the same steps, since they make them together: so each stretch compares like with
/// like, whatever their clocks. Stretches have 2^n steps, n as small as kMost of them allow; where the run
/// goes on beyond, each two become one. So a run of N steps has kMost / 2 to kMost stretches from kMost / 2
/// steps on, and memory and file are bounded by ranks x kMost rows.
///
/// A step number far off those that are known may be damaged: it counts from the rank's next step on, if that
/// follows it. A run that goes back to a checkpoint makes steps again: they are added to the same stretches,
/// which are then of both times. Where it goes back to before the first stretch others are put before it; by
/// more than 2^20 steps the table begins anew.
class OwnTimes {
  struct Sum {
    std::uint32_t steps = 0;
    bool changed = false;
    std::int64_t own_ns = 0, waited_ns = 0;
  };

 public:
  static constexpr std::size_t kMost = 512;
  static constexpr std::size_t kBytesOfRank = kMost * sizeof(Sum);  ///< of a rank at most

  void add(std::uint32_t rank, const OwnTime& time);
  struct Changes {
    bool all = false;  ///< the stretches are others now: these are all rows, and earlier ones void
    std::vector<OwnTimeRow> rows;
  };
  /// Since the last call.
  [[nodiscard]] Changes changes();

 private:
  void fold();
  /// The first stretch shall hold `step`, which lies before it.
  void begin_at(std::int64_t step);
  /// Whether the step lies near those that are known, or follows an odd one of the rank.
  bool is_sure(std::uint32_t rank, std::int64_t step);

  std::map<std::uint32_t, std::vector<Sum>> ranks_;
  std::map<std::uint32_t, std::int64_t> odd_;  ///< by rank: its last step, where that was far off
  /// Of the first stretch, where it has not all of its 2^shift_ steps below 0; and the last that was
  /// measured.
  std::int64_t first_step_ = 0, last_step_ = 0;
  std::uint32_t shift_ = 0;  ///< stretches have 2^shift_ steps
  bool all_changed_ = false;
};

}  // namespace shardscope::store
