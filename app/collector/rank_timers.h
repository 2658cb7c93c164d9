// The next due time of each rank: the earliest of its timers (chunk, row, confirmation, ping, silence). A
// round of the event loop handles only the ranks that are due, so its cost does not depend on the others.
// Pure: the caller passes in the time of a monotonic clock.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardscope::collector {

class RankTimers {
 public:
  /// The rank is due by `at_s`. An earlier scheduled time stays: servicing the rank then finds nothing to do
  /// and schedules the next.
  void schedule(std::uint32_t rank, double at_s) {
    if (std::isinf(at_s) && at_s > 0) return;  // never: nothing is noted, and an earlier time stays
    const auto [noted, added] = at_s_.try_emplace(rank, at_s);
    if (!added && noted->second <= at_s) return;
    noted->second = at_s;
    queue_.push({at_s, rank});
    if (queue_.size() > kMostStale * at_s_.size()) drop_stale();
  }
  void forget(std::uint32_t rank) { at_s_.erase(rank); }
  /// Returns the ranks that are due, earliest first, and removes their entries.
  [[nodiscard]] std::vector<std::uint32_t> take(double now_s) {
    std::vector<std::uint32_t> due;
    while (!queue_.empty() && queue_.top().first <= now_s) {
      const auto [at_s, rank] = queue_.top();
      queue_.pop();
      const auto noted = at_s_.find(rank);
      if (noted == at_s_.end() || noted->second != at_s) continue;  // an earlier time has replaced it
      at_s_.erase(noted);
      due.push_back(rank);
    }
    return due;
  }
  /// Entries of the queue, superseded ones included.
  [[nodiscard]] std::size_t entries() const noexcept { return queue_.size(); }
  /// Most queue entries per scheduled rank, on average.
  static constexpr std::size_t kMostStale = 4;

 private:
  using Entry = std::pair<double, std::uint32_t>;
  /// A superseded entry stays in the queue until its own time, which may be late.
  void drop_stale() {
    queue_ = {};
    for (const auto& [rank, at_s] : at_s_) queue_.push({at_s, rank});
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::unordered_map<std::uint32_t, double> at_s_;  ///< time of each rank's valid entry in `queue_`
};

}  // namespace shardscope::collector
