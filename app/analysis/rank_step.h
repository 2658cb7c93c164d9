// The data of one step of one rank that a digest needs, read in one pass: the rank's block of events is
// looked up once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/analysis/gpu_state.h"
#include "app/analysis/longest.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/spans.h"
#include "app/analysis/summary.h"
#include "app/analysis/unrecorded.h"

namespace shardscope::analysis {

struct RankStep {
  std::uint32_t rank = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< the step on this rank
  TimePartition time;
  Recorded recorded;
  std::int64_t fetch_wait_ns = 0;            ///< if it was recorded
  std::optional<std::int64_t> data_wait_ns;  ///< nullopt if it was not recorded
  Exposure exposed;                          ///< split of time.exposed_comm_ns
  std::uint64_t bucket_flushes = 0;
  std::optional<FetchCounterSums> fetch_counters;
  MicroBatchSums micro_batches;    ///< count 0: none recorded
  std::optional<GpuActivity> gpu;  ///< if the GPU's records cover the step
  /// Last value in the step: how often its caching allocator has freed its cache since the begin of the run.
  std::optional<std::uint32_t> allocator_retries;
  /// Part of time.compute_ns in modules whose forward the backward repeats; attached frameworks only.
  std::int64_t recompute_ns = 0;
  std::optional<ProcessorWaits> processor_waits;  ///< from the samples in the step
  GpuState gpu_state;                             ///< from the samples in the step
  std::vector<GroupExposure> groups;              ///< exposed time by group; Digest::members_of()
};

/// Durations of each instance of a collective (instance_of in communication.h) over the ranks added.
class CollectiveTimes {
 public:
  struct Times {
    std::int64_t transfer_ns = 0;  ///< shortest end - begin of the transfer, or of the span
    std::int64_t sum_ns = 0;       ///< of end - begin, without the rank's pauses before all had entered
    std::uint32_t ranks = 0;
    bool entered = false;  ///< a rank recorded when all had entered
  };
  /// The durations of one rank in a step.
  struct Own {
    std::uint64_t instance = 0;
    Times times;
  };
  [[nodiscard]] static std::vector<Own> read(const store::Store& store, const RankStep& rank);
  void add(const std::vector<Own>& of_rank);
  /// The collective's own duration if no added rank has the instance.
  [[nodiscard]] Times of(const store::Store& store, std::uint32_t rank, instrumentation::StreamId stream,
                         const store::Span& collective) const;

 private:
  std::unordered_map<std::uint64_t, Times> times_;
};

/// A wait of computation for communication.
struct Wait {
  std::uint32_t rank = 0;
  store::Span span;
  std::int64_t running_ns = 0;  ///< without pauses
};
using LongestWaits = Longest<Wait, &Wait::running_ns>;

struct RankReading {
  StepWindow window;
  RankStep step;
  RankActivity activity;
  std::vector<MicroBatch> micro_batches;
  std::vector<CollectiveTimes::Own> collectives;
  Prefetch prefetch;
  std::vector<Wait> waits;  ///< the longest that begin in the step
  /// Approximate size in memory.
  [[nodiscard]] std::size_t bytes() const noexcept;
};
[[nodiscard]] RankReading read_step(const store::Store& store, std::uint32_t rank, const StepWindow& window);

/// The first step that a rank begins at `from_ns` or later, from its own events; nullopt unless it ended by
/// `until_ns`.
[[nodiscard]] std::optional<StepWindow> step_from(const store::Store& store, std::uint32_t rank,
                                                  std::int64_t from_ns, std::int64_t until_ns);

}  // namespace shardscope::analysis
