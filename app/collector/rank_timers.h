// When each rank is due next: one time for all of its timers (its chunk, its row, a confirmation, a ping, a
// silence). A round of the event loop handles the ranks that are due; the others, of thousands, cost it
// nothing. Pure: the caller hands in the time, of a monotonic clock.
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
  /// The rank is due by `at_s`. An earlier time that is noted stays: servicing the rank then finds nothing to
  /// do and notes the next.
  void schedule(std::uint32_t rank, double at_s) {
    if (std::isinf(at_s) && at_s > 0) return;  // never: nothing is noted, and an earlier time stays
    const auto [noted, added] = at_s_.try_emplace(rank, at_s);
    if (!added && noted->second <= at_s) return;
    noted->second = at_s;
    queue_.push({at_s, rank});
    if (queue_.size() > kMostStale * at_s_.size()) drop_stale();
  }
  void forget(std::uint32_t rank) { at_s_.erase(rank); }
  /// Ranks that are due, the earliest first. Nothing is noted of them any more.
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
  /// Of the queue, those that an earlier time has replaced with them.
  [[nodiscard]] std::size_t entries() const noexcept { return queue_.size(); }
  /// For each rank as many entries of the queue at most.
  static constexpr std::size_t kMostStale = 4;

 private:
  using Entry = std::pair<double, std::uint32_t>;
  /// One that was replaced by an earlier time comes up when it is due itself, which may be late.
  void drop_stale() {
    queue_ = {};
    for (const auto& [rank, at_s] : at_s_) queue_.push({at_s, rank});
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::unordered_map<std::uint32_t, double> at_s_;  ///< the entry of `queue_` that counts
};

}  // namespace shardscope::collector
