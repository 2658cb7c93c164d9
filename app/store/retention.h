// Which events the recording of an unbounded run keeps: the newest, and those around moments that triggers or
// requests mark. Sums replace all others. This file only decides; RecordingWriter deletes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardscope::store {

/// Limits of the events that a recording keeps. Without limits it keeps all.
struct Retention {
  std::int64_t max_age_ns = 0;  ///< relative to the run's newest event; 0: no limit
  std::uint64_t max_bytes = 0;  ///< of the file, without its log; 0: no limit
  /// Most moments. Beyond, one of the kind that has most of them is deleted, the oldest; requested ones last.
  /// So slow steps do not displace the one NaN of a month.
  std::size_t moments = 10;
  std::int64_t around_ns = 30'000'000'000;  ///< kept before and after a moment
  std::int64_t moment_age_ns = 0;           ///< moments older than this are deleted; 0: no limit
  [[nodiscard]] bool limited() const noexcept { return max_age_ns > 0 || max_bytes > 0; }
};

inline constexpr const char* kRequested = "request";  ///< kind of a moment that a user requested

/// A moment around which events are kept: for example a slow step, a loss that is NaN, a request.
struct Moment {
  std::int64_t at_ns = 0;                              ///< collector clock
  std::string kind;                                    ///< "slow_step", ...; one word
  std::uint32_t step = UINT32_MAX, rank = UINT32_MAX;  ///< UINT32_MAX: not about one
  std::string text;                                    ///< what happened, as text
  std::int64_t begin_ns = 0, end_ns = 0;               ///< range that is kept; collector clock
  /// End of a moment with a duration, for example a step; used by RetentionPlan::keep(). Collector clock. An
  /// instant if not later than at_ns.
  std::int64_t lasts_until_ns = INT64_MIN;
};

/// The blocks of a recording that is being written, and the decision which of them to delete.
class RetentionPlan {
 public:
  explicit RetentionPlan(const Retention& retention) : retention_(retention) {}

  /// Adds a block that was written as row `id`. Blocks of a rank are added in order. `bytes`: size of all its
  /// rows.
  void wrote(std::uint32_t rank, std::int64_t id, std::int64_t begin_ns, std::int64_t end_ns,
             std::uint64_t bytes);
  /// The run has reached `at_ns` (collector clock).
  void reached(std::int64_t at_ns) noexcept { newest_ns_ = at_ns > newest_ns_ ? at_ns : newest_ns_; }
  /// Sets the current time of the collector's clock. Ages are relative to it if events claim to be later (a
  /// clock jumped, a time is wrong), so that such events do not make all others too old.
  void now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }
  [[nodiscard]] std::int64_t now() const noexcept { return now_ns_; }
  /// Protects a step that may still become a moment, and `around_ns` before it, from deletion by age:
  /// triggers check a step only after the next one has begun. `begin_ns`: begin of the earliest such step,
  /// collector clock. The protection ends kPendingAges times the larger of `max_age_ns` and `around_ns`
  /// before the newest event: a step that never ends must not fill the disk.
  void pending(std::int64_t begin_ns) noexcept { pending_ns_ = begin_ns; }
  static constexpr std::int64_t kPendingAges = 10;
  /// Adds a moment; its begin_ns and end_ns are computed from its time. False, and not added, if no moments
  /// are kept or if it lies within the range kept by another moment of its kind.
  bool keep(Moment moment);
  /// Those of the part being written; of a recording in one file all of them. Sorted by time.
  [[nodiscard]] const std::vector<Moment>& moments() const noexcept { return moments_; }
  /// Those of parts that have ended. Sorted by time. They count no longer towards `Retention::moments`.
  [[nodiscard]] const std::vector<Moment>& ended_moments() const noexcept { return ended_moments_; }
  /// Increases whenever moments() or ended_moments() changes.
  [[nodiscard]] std::uint64_t moments_revision() const noexcept { return moments_revision_; }

  /// The recording goes on in its next part (rotation.h): none of the blocks so far is ever due. Moments
  /// are those of the next part too as long as a rank has no block after them: its next one may have events
  /// around them.
  void part_ended();
  /// All parts with events up to `until_ns` (collector clock) were deleted, and with them what was kept
  /// around these moments.
  void deleted_until(std::int64_t until_ns);

  /// Rows by rank, ascending. They need not be contiguous: the caller checks for blocks that stay between
  /// them.
  using Rows = std::map<std::uint32_t, std::vector<std::int64_t>>;
  /// Returns the blocks to delete if the file's rows use `used_bytes`, and removes them from the plan. The
  /// newest block of each rank stays. If deleting unpinned blocks does not free enough bytes, the oldest
  /// moments are deleted too, in the same order.
  [[nodiscard]] Rows due(std::uint64_t used_bytes);
  /// Whether nothing is left but the newest block of each rank.
  [[nodiscard]] bool at_least() const noexcept {
    return moments_.empty() && blocks_.size() <= newest_block_.size();
  }
  [[nodiscard]] std::size_t ranks() const noexcept { return newest_block_.size(); }

 private:
  struct Key {
    std::int64_t end_ns = 0, id = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::uint32_t rank = 0;
    std::int64_t begin_ns = 0;
    std::uint64_t bytes = 0;
  };
  using Blocks = std::map<Key, Entry>;  ///< oldest first
  [[nodiscard]] bool pinned(const Key& key, const Entry& entry) const;
  [[nodiscard]] std::int64_t oldest_by_age() const;
  /// The oldest moment of the kind with most moments; neither a requested one nor `added`. If there is none,
  /// the oldest.
  [[nodiscard]] std::vector<Moment>::iterator eviction_candidate(const Moment* added = nullptr);
  void forget(std::vector<Moment>::iterator moment);

  Retention retention_;
  Blocks blocks_;                                ///< not kept by a moment
  Blocks pinned_;                                ///< kept by a moment; separate, so due() skips them
  std::map<std::uint32_t, Key> newest_block_;    ///< by rank
  std::vector<Moment> moments_, ended_moments_;  ///< sorted by time
  std::uint64_t moments_revision_ = 0;
  std::int64_t newest_ns_ = INT64_MIN, now_ns_ = INT64_MAX, pending_ns_ = INT64_MAX;
};

}  // namespace shardscope::store
