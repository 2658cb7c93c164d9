// Inputs of the metrics for each completed step, computed once. A live view asks for a summary every second;
// with a digest its cost depends on the number of new steps, not on the length of the run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/rank_step.h"
#include "app/analysis/spans.h"
#include "app/analysis/steps_ahead.h"
#include "app/analysis/summary.h"
#include "app/analysis/volume.h"

namespace shardscope::analysis {

/// One operation in a step, on the lowest rank.
struct OpTotals {
  std::uint64_t count = 0;
  std::int64_t bytes = 0, elems = 0;
  double bus_bytes = 0;  ///< bytes times the bus factor of each collective's group (metrics.md 2.3)
  /// Sums over its instances: the shortest transfer over ranks; the mean duration, waiting included.
  std::int64_t transfer_ns = 0;
  double waiting_ns = 0;
  void add(const OpTotals& other) noexcept {
    count += other.count;
    bytes += other.bytes;
    elems += other.elems;
    bus_bytes += other.bus_bytes;
    transfer_ns += other.transfer_ns;
    waiting_ns += other.waiting_ns;
  }
};

struct StepDigest {
  std::uint32_t step = 0;
  std::vector<RankStep> ranks;
  std::map<instrumentation::CollectiveOp, OpTotals> ops;
  std::int64_t micro_steps = 0;   ///< recorded by the lowest rank; 0: none
  Prefetch prefetch;              ///< of all ranks
  std::optional<PathTimes> path;  ///< if the computation of a rank was recorded
  PathTimes path_gains{};         ///< gains_without(); with `path` only
  std::vector<Lateness> late;     ///< ranks that others waited for
  /// Waits by pair of ranks; with more than kPairs pairs, the longest.
  std::vector<WaitedFor> pairs;
  static constexpr std::size_t kPairs = 64;
  bool pairs_whole = true;            ///< whether `pairs` has all of them
  Unevenness uneven;                  ///< of its micro-steps
  std::optional<VolumeParts> volume;  ///< of the lowest rank, like `ops`; only if it lacks no event
  /// Whether every rank recorded all events from which prefetches are counted.
  [[nodiscard]] bool prefetch_whole() const noexcept;
  [[nodiscard]] bool lacks_events() const noexcept;  ///< some rank's events are missing
  /// Elements communicated by one rank; an all-reduce counts twice (reduce-scatter and all-gather).
  [[nodiscard]] double elements() const;
};

class Digest {
 public:
  /// Adds the steps since the last call that every rank completed by `until_ns` and that were kept whole
  /// (kept.h), rank by rank, until `time` is spent: at least one rank of a step, or one round of skipped
  /// steps. The store must be of the same run with the same time origin. True when none is left.
  bool update(const store::Store& store, std::optional<std::chrono::nanoseconds> time = std::nullopt,
              std::int64_t until_ns = store::Store::kEnd);
  [[nodiscard]] const std::vector<StepDigest>& steps() const noexcept { return steps_; }
  /// Limits the steps kept, counted over all ranks: beyond it the oldest quarter of the steps is removed,
  /// since a run may have no end. Figures then cover the remaining steps.
  void keep_at_most(std::size_t rank_steps) { most_rank_steps_ = rank_steps; }
  [[nodiscard]] std::size_t evicted_steps() const noexcept { return evicted_steps_; }  ///< steps
  /// Completed checkpoints and evaluations of one rank.
  [[nodiscard]] Checkpoints checkpoints(std::uint32_t rank) const;
  [[nodiscard]] Evaluations evaluations(std::uint32_t rank) const;
  /// Index of the first measured step: the run's first step is warm-up (allocation, recording of the trace)
  /// if there are at least two.
  [[nodiscard]] std::size_t first_measured() const noexcept {
    return steps_.size() > 1 && evicted_steps_ == 0 && from_first_step_ ? 1 : 0;
  }
  /// The longest waits of computation for communication in the digested steps, longest first.
  static constexpr std::size_t kLongestWaits = LongestWaits::kMost;
  using Wait = analysis::Wait;
  [[nodiscard]] const std::vector<Wait>& longest_waits() const noexcept { return longest_waits_.all(); }
  /// The longest pieces of the steps' critical paths, longest first.
  struct LongPiece {
    PathPiece piece;
    std::uint32_t step = 0;
    std::int64_t ns = 0;
  };
  [[nodiscard]] const std::vector<LongPiece>& longest_pieces() const noexcept {
    return longest_pieces_.all();
  }
  /// The ranks of a group of RankStep::groups, ascending; empty if the key is not known.
  [[nodiscard]] const std::vector<std::uint32_t>& members_of(std::uint64_t group) const;
  /// Counts of trace modes and invalidations so far, over all ranks.
  [[nodiscard]] std::uint64_t trace_record() const noexcept { return trace_record_; }
  [[nodiscard]] std::uint64_t trace_complete() const noexcept { return trace_complete_; }
  [[nodiscard]] std::uint64_t trace_invalidated() const noexcept { return trace_invalidated_; }
  /// The fetch trace of evaluations, without invalidated ones; nullopt if none was recorded or followed.
  [[nodiscard]] std::optional<TraceCounts> eval_trace() const noexcept { return eval_trace_; }

 private:
  /// The next step, while ranks are added one after the other: the events of each rank are read once.
  struct Pending {
    std::map<std::uint32_t, StepWindow> windows;  ///< by rank, all of one step
    StepDigest digest;
    CollectiveTimes durations;
    std::vector<RankActivity> activities;
    LongestWaits waits;
    std::vector<std::vector<MicroBatch>> micro_batches;  ///< of the ranks added
  };
  /// The next step of a rank, if it ended by `until_ns`.
  [[nodiscard]] std::optional<StepWindow> next_step(const store::Store& store, std::uint32_t rank,
                                                    std::int64_t until_ns);
  enum class Found : std::uint8_t { step, no_step, out_of_time };
  using OutOfTime = std::function<bool()>;
  /// Finds the next step that every rank has recorded; Found::no_step if a rank has not reached it. Calls
  /// `out_of_time` after each round of skipping steps that a rank lacks.
  Found find_windows(const store::Store& store, std::int64_t until_ns, const OutOfTime& out_of_time);
  void take_rank(const store::Store& store, std::uint32_t rank, const StepWindow& window,
                 std::int64_t known_until_ns, const OutOfTime& out_of_time);
  void complete_step(const store::Store& store);
  void count_trace_events(const store::Store& store);
  void count_between_steps(const store::Store& store);
  std::map<std::uint32_t, std::int64_t> taken_until_;  ///< by rank: end of the last step added
  std::map<std::uint32_t, Checkpoints> checkpoints_;   ///< by rank
  std::map<std::uint32_t, Evaluations> evaluations_;   ///< by rank
  std::vector<StepDigest> steps_;
  std::size_t most_rank_steps_ = SIZE_MAX, evicted_steps_ = 0;
  bool from_first_step_ = false;  ///< steps_ began with the first step of the run
  Pending pending_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> groups_;
  LongestWaits longest_waits_;
  Longest<LongPiece, &LongPiece::ns> longest_pieces_;
  StepsAhead ahead_;
  KeptVolumeModel volumes_;
  std::uint64_t trace_record_ = 0, trace_complete_ = 0, trace_invalidated_ = 0;
  std::optional<TraceCounts> eval_trace_;
};

/// A digest of all completed steps. Compute it once and pass it on.
[[nodiscard]] Digest digest_of(const store::Store& store);
/// The summary of the digested steps.
[[nodiscard]] Summary summarize(const store::Store& store, const Digest& digest);
[[nodiscard]] Summary summarize(const store::Store& store, const store::RecordingInfo& info,
                                const Digest& digest);
[[nodiscard]] Summary whole_summary(const store::Store& store, const store::RecordingInfo& info,
                                    const Digest& digest);

}  // namespace shardscope::analysis
