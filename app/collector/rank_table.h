// The ranks of a run, when each is to be serviced next, and how many are in which state. Pure.
//
// [Note: what a rank waits for]
// note_change() must be called where a rank's change may make one of its timers due earlier: it schedules the
// earliest time. A change that makes a timer due later needs no call: the rank is serviced too early once,
// and its next time is scheduled then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "app/collector/pacing.h"
#include "app/collector/rank_counts.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_timers.h"
#include "app/collector/run_identity.h"

namespace shardscope::collector {

class RankTable {
 public:
  using Ranks = std::map<std::uint32_t, RankSession>;
  static constexpr double kSilentAfter_s = 6;  ///< a rank sends a message at least every second

  /// Due times depend on these; they must outlive the table.
  RankTable(const Pacing& pacing, const RunIdentity& identity) : pacing_(pacing), identity_(identity) {}

  /// The rank's session, created where there is none. Its address is stable.
  [[nodiscard]] RankSession& session(std::uint32_t rank) {
    return ranks_.try_emplace(rank, rank).first->second;
  }
  /// The rank's session; null: it has none.
  [[nodiscard]] RankSession* known(std::uint32_t rank) {
    const auto at = ranks_.find(rank);
    return at == ranks_.end() ? nullptr : &at->second;
  }
  // In ascending order of ranks.
  [[nodiscard]] Ranks::iterator begin() { return ranks_.begin(); }
  [[nodiscard]] Ranks::iterator end() { return ranks_.end(); }
  [[nodiscard]] Ranks::const_iterator begin() const { return ranks_.begin(); }
  [[nodiscard]] Ranks::const_iterator end() const { return ranks_.end(); }
  [[nodiscard]] Ranks::iterator from(std::uint32_t rank) { return ranks_.lower_bound(rank); }
  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ranks_.empty(); }
  [[nodiscard]] const RankCounts& counts() const noexcept { return counts_; }
  /// Age at which the rank's pending events become a chunk; shorter for a lost rank, which sends no more.
  [[nodiscard]] double chunk_age_s(const RankSession& rank) const noexcept {
    const double age_s = pacing_.pace().chunk_age_s;
    return rank.row.connected ? age_s : std::min(age_s, kShortestIdleAge_s);
  }

  /// Adds to a reply the rows that have changed since revision `known`; all where that is 0.
  void add_states(wire::ViewReply& reply, std::uint64_t known) const;

  /// Removes ranks that have published nothing. `forgotten` is called before each removal.
  void forget_unpublished(const std::function<void(const RankSession&)>& forgotten);

  void note_change(const RankSession& rank, double now_s);
  void note_change_of_all(double now_s);
  /// Ranks that are due. The caller services each and then calls serviced().
  [[nodiscard]] std::vector<std::uint32_t> take_due(double now_s) { return timers_.take(now_s); }
  /// Schedules the rank's next time; work that could not be done is retried shortly after.
  void serviced(const RankSession& rank, double now_s);

 private:
  [[nodiscard]] double due_s(const RankSession& rank, double now_s) const;
  void count(const RankSession& rank);

  const Pacing& pacing_;
  const RunIdentity& identity_;
  Ranks ranks_;
  RankTimers timers_;
  RankCounts counts_;
};

}  // namespace shardscope::collector
