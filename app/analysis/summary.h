// The numbers of a run: what `summary --json` prints and the Overview shows. Definitions: metrics.md;
// fields: its section 4. A figure that cannot be computed is an empty optional, never zero.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/coordinator.h"
#include "app/analysis/distributions.h"
#include "app/analysis/framework.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/kept.h"
#include "app/analysis/micro_batches.h"
#include "app/analysis/not_finite.h"
#include "app/analysis/outside_memory.h"
#include "app/analysis/param_groups.h"
#include "app/analysis/rank_drift.h"
#include "app/analysis/scheduling.h"
#include "app/analysis/volume.h"
#include "app/store/losses.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// metrics.md 2.2: total = checkpoint + compute + exposed_comm + exposed_copy + idle + unrecorded, exactly,
/// in nanoseconds. What runs while a checkpoint is saved or loaded is the checkpoint's and counts nowhere
/// else.
struct TimePartition {
  std::int64_t checkpoint_ns = 0;
  std::int64_t compute_ns = 0, exposed_comm_ns = 0, exposed_copy_ns = 0, idle_ns = 0, total_ns = 0;
  /// Where events are missing or were not emitted (unrecorded.h): no part of it counts as anything else.
  std::int64_t unrecorded_ns = 0;
  std::int64_t comm_ns = 0;  ///< |U_comm|, of what was recorded
  /// Whether what the rank computed was recorded. Where nothing was (at a detail below `modules`, by a
  /// runtime that does not emit it), all but the checkpoint is unrecorded: neither idle time nor exposed
  /// communication is known then.
  [[nodiscard]] bool known() const noexcept { return compute_ns > 0; }
  [[nodiscard]] std::int64_t recorded_ns() const noexcept { return total_ns - unrecorded_ns; }
  void add(const TimePartition& other) noexcept;
  [[nodiscard]] std::optional<double> overlap_pct()
      const;  ///< 100 (1 - exposed_comm / |U_comm|); where known()
};
/// How one rank spent [begin, end), paused time cut out. Computation is what the compute stream of the GPU
/// did where its records cover all of it; else kernel spans where they were recorded; else module and
/// optimizer spans without the waits inside them.
[[nodiscard]] TimePartition partition_time(const store::Store& store, std::uint32_t rank,
                                           std::int64_t begin_ns, std::int64_t end_ns);

struct OpRow {
  instrumentation::CollectiveOp op{};
  std::uint64_t count = 0;
  std::int64_t bytes = 0, elems = 0;  ///< metrics 2.3 S, summed over one rank's operations
  /// Rates of the transfer alone: S over the time from the last arrival to the end, the least over ranks;
  /// from the begin where the last arrival was not recorded.
  std::optional<double> algbw_gbs, busbw_gbs;
  /// As a cost: S over the time from begin to end, mean over ranks, waiting for the last one included.
  std::optional<double> algbw_waiting_gbs, busbw_waiting_gbs;
};
/// Checkpoints of a rank in the whole run. They lie between steps: no step's time holds them.
struct Checkpoints {
  std::uint32_t saves = 0, loads = 0;
  std::int64_t save_ns = 0, load_ns = 0;
};
/// Evaluations of a rank in the whole run, those that have ended. They lie between steps as well.
struct Evaluations {
  std::uint32_t count = 0;
  std::int64_t ns = 0;
};
/// How long threads of a rank could have run and had no processor.
struct ProcessorWaits {
  std::int64_t waited_ns = 0;  ///< summed over its threads
  std::int64_t over_ns = 0;    ///< of the time that the samples cover
  std::uint64_t switches = 0;  ///< a thread lost its processor to another
  void add(const ProcessorWaits& other) noexcept {
    waited_ns += other.waited_ns;
    over_ns += other.over_ns;
    switches += other.switches;
  }
  /// Of a time as long as this.
  [[nodiscard]] double waited_of(double time) const noexcept {
    return over_ns > 0 ? time * static_cast<double>(waited_ns) / static_cast<double>(over_ns) : 0;
  }
};
struct RankSummary {
  std::uint32_t rank = 0;
  /// Parts of time.exposed_comm_ns: until the last rank had entered, and while bytes moved (critical_path.h).
  std::int64_t waiting_ns = 0, moving_ns = 0;
  std::int64_t others_waited_ns = 0;  ///< for this rank, exposed, summed over the others
  std::uint64_t entered_last = 0;     ///< collectives that it entered last while others waited
  TimePartition time;  ///< summed over the steps measured of which it is known; over all where it is of none
  std::uint32_t time_steps = 0;               ///< of which it is known
  std::uint32_t whole_steps = 0;              ///< steps measured of which no event up to `modules` is missing
  bool copies_known = false;                  ///< else exposed copies, if there were any, are in time.idle_ns
  std::optional<std::int64_t> fetch_wait_ns;  ///< of the same steps, where they were recorded
  std::optional<std::int64_t> data_wait_ns;   ///< nothing where it was not recorded
  Checkpoints checkpoints;
  Evaluations evaluations;
  std::int64_t clock_offset_ns = 0, clock_residual_ns = 0;
  std::optional<store::ClockDrift> clock_drift;
  std::map<instrumentation::MemoryPool, store::MemorySample> memory_peak;
  std::optional<OutsidePeak> outside;  ///< memory that is in no category; nothing where it was not sampled
  std::optional<store::MemorySample> model_state_peak;  ///< nothing where it was not measured
  bool model_states_in_part = false;  ///< that is because part changed where it was not recorded
  /// Over the whole run; nothing where none were recorded (stages 0 to 2).
  std::optional<FetchCounterSums> fetch_counters;
  /// Micro-batches of every completed step; nothing where none were recorded.
  std::optional<MicroBatchSums> micro_batches;
  /// Over the steps measured that the GPU's records cover; nothing where they cover none.
  std::optional<GpuActivity> gpu;
  /// In the steps measured, how often its caching allocator had to free its cache: each time it waits for the
  /// device. Nothing where it was not recorded.
  std::optional<std::uint64_t> allocator_retries;
  /// Of samples in the steps measured; nothing where the kernel of its host does not say it.
  std::optional<ProcessorWaits> processor_waits;
};
/// Why model states take more than their expression.
enum class MemoryCause : std::uint8_t {
  padding,            ///< shards of equal size: what fills the last ones
  rounding,           ///< buffers are of whole blocks
  scales,             ///< of frozen weights that are stored as int8, whose expression is a byte an element
  unquantized,        ///< frozen weights that keep the storage type where others are int8
  pieces,             ///< first layout of stage 1: owned parameters a second time, in a row
  no_secondary,       ///< hpZ, below 0: parameters without a secondary copy at the peak
  whole_gradients,    ///< of modules whose gradients are computed and not reduced to their owners yet
  gradient_copies,    ///< compat gradient_buffers: fp32 copies for the update, less what is freed
  cut_gradients,      ///< DeepSpeed 2: of parameters that are cut between ranks both have whole gradients
  earlier_gradients,  ///< DeepSpeed 2: of earlier micro-steps, beside those of the last
  secondary_shards,   ///< FSDP2, reshard_after_forward=N: parts for fewer ranks, from forward to backward
  zenflow_chosen,     ///< ZenFlow: states of the chosen columns, a second time
  zenflow_device_gradients,  ///< ZenFlow: owned gradients stay on the device
  zenflow_sums,              ///< ZenFlow: gradients accumulated for the CPU optimizer, beyond one set
};
/// "padding", ... and one sentence that explains it.
[[nodiscard]] const char* name_of(MemoryCause cause) noexcept;
[[nodiscard]] const char* explain(MemoryCause cause) noexcept;
struct MemoryPart {
  MemoryCause cause{};
  std::int64_t bytes = 0;
};
struct MemoryModel {
  std::string expression;  ///< e.g. "2S + 14S/n"
  std::int64_t bytes_per_rank = 0;
  std::optional<std::int64_t> measured_bytes_per_rank;  ///< largest over ranks, at their own peak
  std::uint32_t measured_rank = 0;                      ///< that rank
  std::int64_t measured_at_ns = 0;                      ///< and when: not when the pool held most
  std::optional<double> excess_pct;
  /// Named extras over the expression on that rank, and what they leave over; nothing where the recording
  /// does not name its parameters.
  std::vector<MemoryPart> parts;
  std::optional<std::int64_t> unexplained_bytes;
  /// The same for model states that are offloaded, by pool; the fields above are the device's.
  struct Offloaded {
    instrumentation::MemoryPool pool{};
    std::string expression;
    std::int64_t bytes_per_rank = 0;
    std::optional<std::int64_t> measured_bytes_per_rank;
    std::vector<MemoryPart> parts;
    std::optional<std::int64_t> unexplained_bytes;
  };
  std::vector<Offloaded> offloaded;
};
/// Micro-steps of all ranks that recorded or followed the fetch trace, and how often it was invalidated.
struct TraceCounts {
  std::uint64_t record = 0, complete = 0, invalidated = 0;
};
struct Prefetch {
  std::uint64_t early = 0, just_in_time = 0, late = 0, mistargeted = 0, unused = 0;
  std::int64_t late_wait_ns = 0;
  std::int64_t vain_bytes = 0;  ///< gathered by those that were mistargeted or unused (metrics 2.3 S)
};
/// A stretch of a critical path, by what ran there.
struct LongPathPiece {
  std::string part, label;  ///< "backward", "h.3.mlp"; label empty: no span covers most of it
  std::uint32_t rank = 0, step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};
/// Exposed waiting of one rank for another that came last, over the steps measured.
struct WaitedPair {
  std::uint32_t waiter = 0, late = 0;
  std::int64_t ns = 0;
};
/// What bounds the steps: the means of their critical paths (critical_path.h), by name_of(PathPart).
struct PathSummary {
  /// Those that could be replayed; where none could be, those whose path is known.
  std::uint32_t steps = 0;
  std::vector<std::pair<std::string, double>> ms_per_step;  ///< parts above 0; they sum to the step
  /// By how much a step would be shorter if the part took no time (free_parts.h), of the same steps; empty
  /// where none could be replayed. They do not sum to anything.
  std::vector<std::pair<std::string, double>> gain_ms_per_step;
  std::vector<LongPathPiece> longest{};  ///< of all completed steps, longest first
};
/// How much arithmetic a token takes, and how much of the hardware's that is.
struct Efficiency {
  double flop_per_token = 0;
  std::string formula;                             ///< with its numbers
  std::optional<double> tflops_per_rank, mfu_pct;  ///< mfu: where the hardware's peak is known
  std::optional<double> peak_tflops;
};
/// A named extra (or saving, below 0) over the expression of the communicated volume.
struct VolumePart {
  VolumeCause cause{};
  double elements_per_step = 0;
};
struct Summary {
  // run
  std::uint32_t world = 0;
  std::uint32_t copy_ranks = 0;  ///< of them, those that train one copy of the model: one data-parallel group
  std::int32_t stage = 0;
  std::int64_t params = 0;
  std::string model, config_json, device;
  std::vector<ParamGroupRow> param_groups;  ///< none where the run gave none
  std::string framework;                    ///< that was watched; empty: not given
  Framework kind = Framework::zero;
  std::uint64_t records = 0;  ///< what it can record (instrumentation/capability.h); 0: not given
  std::vector<instrumentation::NotRecorded> not_recorded;
  double link_gbps = 0, link_latency_us = 0;
  bool simulated = false;
  std::uint64_t events = 0;  ///< that the figures are made of
  store::Losses losses;
  std::optional<instrumentation::Detail> recorded_detail;  ///< the highest of which there is anything
  std::vector<store::Store::UnmatchedEnds> unmatched_ends;
  std::vector<std::string> problems;           ///< what is missing or damaged in the recording, as text
  std::optional<Distributions> distributions;  ///< of a recording with limits
  std::optional<Kept> kept;                    ///< what is here at full detail; nothing: everything
  /// Ranks that became slow, or always were; nothing where ranks' own times were not kept (rank_drift.h).
  std::optional<std::vector<RankDrift>> rank_drifts;
  std::optional<NotFiniteGradients> not_finite;  ///< nothing where the program does not record them
  std::uint32_t steps = 0;                       ///< completed
  std::uint32_t steps_measured = 0;              ///< without the first (warm-up) where there are more
  std::optional<double> step_ms_median, step_ms_p95, tokens_per_s;
  std::vector<double> loss, grad_norm, loss_scale, clip_factor;  ///< by step; NaN where missing
  std::vector<double> eval_loss;  ///< held-out loss after each step; NaN where none was measured
  std::vector<double> step_ms;
  std::vector<RankSummary> ranks;
  std::optional<MicroBatchSums> micro_batches;  ///< of all ranks and every completed step
  std::optional<double> uneven_pct;             ///< Unevenness::pct()
  std::vector<WaitedPair> waited_pairs;         ///< longest first
  bool waited_pairs_whole = true;  ///< else of each step those that waited longest: at least as long as said
  std::optional<PathSummary> critical_path;  ///< where it is known what the ranks computed
  std::optional<Efficiency> efficiency;
  MemoryModel memory_model;
  /// Communicated per rank (busbw-free: metrics 2.3 elems; all-reduce counts twice), of the steps in which it
  /// was recorded.
  std::optional<double> elements_per_step;
  /// Steps measured that elements_per_step and its parts are of: no event that they need is missing.
  std::uint32_t elements_steps = 0;
  std::uint32_t ops_steps = 0;  ///< the same of `ops`
  std::string comm_expression;  ///< "2S" or "3S"
  double expected_elements_per_step = 0;
  /// expected + these = elements_per_step, but for what is unexplained; only those that are not 0.
  std::vector<VolumePart> volume_parts;
  std::optional<double> unexplained_elements_per_step;  ///< unknown at a detail without parameters
  std::vector<OpRow> ops;
  /// Prefetches of all ranks; unknown where stage 3 recorded no decision of its scheduler.
  std::optional<Prefetch> prefetch;
  std::uint32_t prefetch_steps = 0;  ///< of which it is: completed ones of which no rank lacks events
  std::uint32_t lacking_steps = 0;   ///< completed steps of which a rank lacks events
  std::optional<TraceCounts> trace;  ///< unknown where stage 3 recorded no mode of it
  /// Batches of evaluations that recorded or followed the trace of evaluation; nothing where there were none.
  /// What was invalidated is in `trace`, of either.
  std::optional<TraceCounts> eval_trace;
  std::optional<TraceInvalidation> first_invalidation;  ///< of the lowest rank that has one
  std::string first_invalidation_text;                  ///< explain() of it
  std::optional<Scheduling> scheduling;                 ///< whole_summary() alone: it reads every decision
};
[[nodiscard]] Summary summarize(const store::Store& store);
/// The same, and what only the file says: its problems and distributions.
[[nodiscard]] Summary summarize(const store::Store& store, const store::RecordingInfo& info);
/// All that `summary --json` says of a recording.
[[nodiscard]] Summary whole_summary(const store::Store& store, const store::RecordingInfo& info);
[[nodiscard]] std::string to_json(const Summary& summary);

class Digest;  // digest.h

/// A setting to change.
struct Change {
  std::string key;    ///< "zero_optimization.reduce_bucket_size", as `run --set` and `what-if --set` take it
  std::string value;  ///< JSON
};
/// Changes that go together, and the sentence that says so.
struct Advice {
  std::vector<Change> changes{};
  std::string next_step{};
};
/// What a finding's bytes are: of a rank's memory, or what it communicates in a step.
enum class BytesOf : std::uint8_t { memory, communication };
/// A diagnosis: what, how much, why, what to do. docs/findings has a page of each id.
struct Finding {
  instrumentation::Severity severity{};
  std::string title, evidence, next_step;
  std::int64_t at_ns = 0;  ///< where to look; 0: the whole run
  std::uint32_t rank = instrumentation::kNoId;
  std::int64_t until_ns = 0;                 ///< end of where to look; 0: a moment, or the whole run
  std::string id{}, page{}, panel{};         ///< "straggler", "docs/findings/straggler.md", "timeline"
  std::optional<double> cost_ms{};           ///< of a step
  std::optional<double> cost_once_ms{};      ///< of the run
  std::optional<std::int64_t> cost_bytes{};  ///< of what `bytes_of` says
  std::vector<Change> changes{};             ///< settings that this stage, framework and cause have
  /// By how much what-if predicts that a step gets shorter with all changes, and the device's peak smaller.
  std::optional<double> gain_ms{};
  std::optional<std::int64_t> gain_bytes{};
  std::string gain_basis{};             ///< of what figures; or why nothing is predicted
  std::vector<std::string> explains{};  ///< titles of findings that this one is the cause of
  /// What what-if is asked about (advice.h), what disturbs least first; until then `changes` and `next_step`
  /// are those of the first.
  std::vector<Advice> options{};
  std::string otherwise{};  ///< what to do where none of them gains
  BytesOf bytes_of = BytesOf::memory;
};
/// Causes before symptoms; within the same severity what costs more comes first. The digest is of all
/// completed steps.
[[nodiscard]] std::vector<Finding> find(const store::Store& store, const Summary& summary,
                                        const Digest& digest);
/// Makes the digest.
[[nodiscard]] std::vector<Finding> find(const store::Store& store, const Summary& summary);
[[nodiscard]] std::string findings_json(const std::vector<Finding>& findings, bool simulated);

struct Difference {
  std::string metric, unit;
  std::optional<double> a, b;
  double spread_a = 0,
         spread_b = 0;  ///< half width of the interquartile range over steps: to show, not to judge
  bool lower_is_better = true;
  bool of_run = false;  ///< each run has one value of it, which nothing scatters
  /// Of B - A in the figure's unit, 95 %: of the steps that both have, in pairs, by blocks, or of repeats.
  /// Nothing where there are too few of them.
  std::optional<ConfidenceInterval> interval{};
  /// Whether the interval leaves zero out, or the one value of each run differs. Where it does not, neither
  /// is better.
  [[nodiscard]] bool differs() const noexcept;
};
struct Comparison {
  std::vector<Difference>
      metrics;  ///< step time, exposed communication, overlap, peak memory, flushes, tokens/s
  std::vector<std::string> config_changes;  ///< "zero_optimization.overlap_comm: true -> false"
  std::string verdict;                      ///< one sentence that the numbers bear
  std::string method;                       ///< how it was judged, and of how many steps
  std::vector<std::string>
      unlike;  ///< what the two trained otherwise: "model: gpt2 and gpt-mini". Empty: alike
  bool simulated_a = false, simulated_b = false;
  /// What the figures of a side lack, in words: losses and problems of each of its runs. Empty: nothing.
  std::vector<std::string> missing_a, missing_b;
};
/// A run to compare: its store and what was made from it. None is owned.
struct Run {
  const store::Store* store = nullptr;
  const Summary* summary = nullptr;
  const Digest* digest = nullptr;  ///< of all its steps, where the caller has one; else it is made
};
/// A against B. Medians are over the steps of all repeats. What differs is judged by pairs of steps with the
/// same number (paired_steps.h), so never by how far the steps of one run scatter.
[[nodiscard]] Comparison compare(const std::vector<Run>& a, const std::vector<Run>& b);

}  // namespace shardscope::analysis
