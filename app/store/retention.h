// What a recording keeps of a run without an end: the newest stretch at full detail, the stretches around
// moments that triggers or requests mark, of everything else sums. Pure decisions; RecordingWriter carries
// them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardscope::store {

/// How much of a run a recording keeps at full detail. Without limits: everything.
struct Retention {
  std::int64_t max_age_ns = 0;              ///< before the run's newest event; 0: no limit
  std::uint64_t max_bytes = 0;              ///< of the file, without its log; 0: no limit
  std::size_t moments = 10;                 ///< that are kept; beyond, the oldest that was not requested goes
  std::int64_t around_ns = 30'000'000'000;  ///< kept before and after a moment
  std::int64_t moment_age_ns = 0;           ///< moments are deleted at this age; 0: never for that
  [[nodiscard]] bool limited() const noexcept { return max_age_ns > 0 || max_bytes > 0; }
};

inline constexpr const char* kRequested = "request";  ///< kind of a moment that a person requested

/// Something that the run was kept around: a step that was slow, a loss that was not a number, a request.
struct Moment {
  std::int64_t at_ns = 0;                              ///< collector clock
  std::string kind;                                    ///< "slow_step", ...; one word
  std::uint32_t step = UINT32_MAX, rank = UINT32_MAX;  ///< where it is about one
  std::string text;                                    ///< what happened, in words
  std::int64_t begin_ns = 0, end_ns = 0;               ///< what is kept; collector clock
  /// End of something that lasted, as a step, for RetentionPlan::keep(). Collector clock; not later than
  /// at_ns: it is an instant.
  std::int64_t lasts_until_ns = INT64_MIN;
};

/// The blocks of a recording that is being written, and which of them go.
class RetentionPlan {
 public:
  explicit RetentionPlan(const Retention& retention) : retention_(retention) {}

  /// A block was written as row `id`; of a rank they come in order. `bytes`: what all its rows take.
  void wrote(std::uint32_t rank, std::int64_t id, std::int64_t begin_ns, std::int64_t end_ns,
             std::uint64_t bytes);
  /// The run has reached this time (collector clock).
  void reached(std::int64_t at_ns) noexcept { newest_ns_ = at_ns > newest_ns_ ? at_ns : newest_ns_; }
  /// The collector's clock shows this. What claims to be later (a clock that jumped, a wrong time) makes
  /// nothing else old.
  void now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }
  [[nodiscard]] std::int64_t now() const noexcept { return now_ns_; }
  /// A step is judged when the next has begun: until then its begin, and what lies around before it, must not
  /// be too old. `begin_ns`: of the earliest step that may still become a moment, collector clock. It stays
  /// for kPendingAges times the limit at most: a step without an end must not fill the disk.
  void pending(std::int64_t begin_ns) noexcept { pending_ns_ = begin_ns; }
  static constexpr std::int64_t kPendingAges = 10;
  /// A moment; its begin and end are set from its time. One that lies within what another moment of its kind
  /// keeps is not added: false.
  bool keep(Moment moment);
  [[nodiscard]] const std::vector<Moment>& moments() const noexcept { return moments_; }
  /// Changes when moments() does.
  [[nodiscard]] std::uint64_t moments_revision() const noexcept { return moments_revision_; }

  /// Rows of one rank, ascending; whether neighbours of them stay is for the caller to look at.
  using Rows = std::map<std::uint32_t, std::vector<std::int64_t>>;
  /// What goes now, where the file's rows take `used_bytes`; the plan is without them from here on. The
  /// newest block of a rank stays. When only moments could make room, the oldest of them go, requested ones
  /// last.
  [[nodiscard]] Rows due(std::uint64_t used_bytes);

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
  /// The oldest that was not requested and that is not `added`; where there is none, the oldest.
  [[nodiscard]] std::vector<Moment>::iterator eviction_candidate(const Moment* added = nullptr);
  void forget(std::vector<Moment>::iterator moment);

  Retention retention_;
  Blocks blocks_;                                       ///< that no moment keeps
  Blocks pinned_;                                       ///< apart: a look at what goes does not go over them
  std::map<std::uint32_t, std::int64_t> newest_block_;  ///< by rank: its row
  std::vector<Moment> moments_;                         ///< by time
  std::uint64_t moments_revision_ = 0;
  std::int64_t newest_ns_ = INT64_MIN, now_ns_ = INT64_MAX, pending_ns_ = INT64_MAX;
};

}  // namespace shardscope::store
