// When the collector's event loop runs its timers. Pure: the caller passes in the time of a monotonic
// clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "app/collector/collector_pace.h"

namespace shardscope::collector {

class Pacing {
 public:
  static constexpr double kCommitEvery_s = 0.5, kLivenessEvery_s = 0.2;
  /// Time between two readings of the clock that counts as a stall; a normal turn takes less than a tenth.
  static constexpr double kStall_s = 2;
  static constexpr double kRoundPerRank_s = 50e-6, kShortestRound_s = 0.001, kLongestRound_s = 0.05;
  /// For a run that is only recorded: a round over thousands of ranks costs more than the messages received
  /// between two rounds.
  static constexpr double kLongestIdleRound_s = 0.2;

  /// State as of the last round over the ranks.
  [[nodiscard]] Watch watched() const noexcept { return watched_; }
  [[nodiscard]] const CollectorPace& pace() const noexcept { return pace_; }
  /// True where the state has changed.
  bool watch(Watch watched, std::size_t ranks) noexcept {
    pace_ = pace_of(watched, ranks);
    return std::exchange(watched_, watched) != watched;
  }

  /// How long the loop may wait for messages. `full`: it receives none, and soon checks again for room.
  [[nodiscard]] double rest_s(double now_s, bool full) const noexcept {
    if (full) return pace_of(Watch::active, 0).iteration_s;
    return std::min(pace_.iteration_s, next_commit_s_ - now_s);
  }
  /// Call at each turn's begin and before timers run. Returns the length of a stall; 0: there was none.
  [[nodiscard]] double stalled_s(double now_s) noexcept {
    const double before_s = std::exchange(turned_s_, now_s);
    const double gap_s = now_s - before_s;
    return before_s == 0 || gap_s < kStall_s ? 0 : gap_s;
  }
  /// A round handles the ranks that are due (RankTable) and detects lost ranks. Its interval grows with the
  /// number of ranks, so that a rank's events that arrive within it are handled together. A viewer that
  /// connects makes a round due at once.
  [[nodiscard]] bool round_due(double now_s, bool viewer_asks) const noexcept {
    return now_s >= next_round_s_ || (viewer_asks && watched_ == Watch::idle);
  }
  void round_begun(double now_s, std::size_t ranks) noexcept {
    const double longest = watched_ == Watch::idle ? kLongestIdleRound_s : kLongestRound_s;
    next_round_s_ =
        now_s + std::clamp(kRoundPerRank_s * static_cast<double>(ranks), kShortestRound_s, longest);
  }
  /// True at most once in kCommitEvery_s: the recording is to be committed.
  [[nodiscard]] bool commit_due(double now_s) noexcept { return due(next_commit_s_, now_s, kCommitEvery_s); }
  /// True at most once in kLivenessEvery_s: the ranks' liveness is to be checked.
  [[nodiscard]] bool liveness_due(double now_s) noexcept {
    return due(next_liveness_s_, now_s, kLivenessEvery_s);
  }

 private:
  static bool due(double& next_s, double now_s, double every_s) noexcept {
    if (now_s < next_s) return false;
    next_s = now_s + every_s;
    return true;
  }
  Watch watched_ = Watch::active;
  CollectorPace pace_ = pace_of(Watch::active, 0);
  double next_commit_s_ = 0, next_liveness_s_ = 0, next_round_s_ = 0;
  double turned_s_ = 0;  ///< time of the last stalled_s() call; 0: none
};

}  // namespace shardscope::collector
