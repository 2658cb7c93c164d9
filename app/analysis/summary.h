// The figures of a run: printed by `summary --json`, shown by the Overview. Definitions: metrics.md; fields:
// its section 4. A figure that cannot be computed is an empty optional, never zero.
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
#include "app/analysis/gpu_state.h"
#include "app/analysis/kept.h"
#include "app/analysis/late_causes.h"
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
/// in nanoseconds. Time in which a checkpoint is saved or loaded counts as checkpoint only.
struct TimePartition {
  std::int64_t checkpoint_ns = 0;
  std::int64_t compute_ns = 0, exposed_comm_ns = 0, exposed_copy_ns = 0, idle_ns = 0, total_ns = 0;
  /// Events are missing or were not emitted (unrecorded.h): excluded from all other parts.
  std::int64_t unrecorded_ns = 0;
  std::int64_t comm_ns = 0;  ///< |U_comm|, as far as recorded
  /// Whether computation was recorded. If not (detail below `modules`, or a runtime that does not emit it),
  /// all time but the checkpoint is unrecorded: idle time and exposed communication are then unknown.
  [[nodiscard]] bool known() const noexcept { return compute_ns > 0; }
  [[nodiscard]] std::int64_t recorded_ns() const noexcept { return total_ns - unrecorded_ns; }
  void add(const TimePartition& other) noexcept;
  [[nodiscard]] std::optional<double> overlap_pct() const;  ///< 100 (1 - exposed_comm / |U_comm|); if known()
};
/// Partitions [begin, end) of one rank, without paused time. Computation is the activity of the GPU's compute
/// stream if its records cover the interval; else kernel spans if recorded; else module and optimizer spans
/// minus the waits inside them.
[[nodiscard]] TimePartition partition_time(const store::Store& store, std::uint32_t rank,
                                           std::int64_t begin_ns, std::int64_t end_ns);

struct OpRow {
  instrumentation::CollectiveOp op{};
  std::uint64_t count = 0;
  std::int64_t bytes = 0, elems = 0;  ///< metrics 2.3 S, summed over the operations of one rank
  /// Rates of the transfer: S over the time from the last arrival to the end, minimum over ranks; from the
  /// begin if the last arrival was not recorded.
  std::optional<double> algbw_gbs, busbw_gbs;
  /// Rates including waiting: S over the time from begin to end, mean over ranks.
  std::optional<double> algbw_waiting_gbs, busbw_waiting_gbs;
};
/// The transfers of one operation in one group of ranks, over the latest measured steps.
struct GroupLink {
  std::vector<std::uint32_t> ranks;  ///< ascending
  instrumentation::CollectiveOp op{};
  std::uint64_t count = 0;
  std::int64_t bytes = 0;                        ///< metrics 2.3 S, summed over its collectives
  std::uint32_t steps = 0;                       ///< with such a transfer
  std::optional<double> busbw_gbs{};             ///< median over these steps
  std::optional<ConfidenceInterval> interval{};  ///< 95 %, by blocks of steps
  std::string no_interval{};                     ///< why there is none; empty if there is one
};
/// Checkpoints of a rank in the whole run, between steps: excluded from step times.
struct Checkpoints {
  std::uint32_t saves = 0, loads = 0;
  std::int64_t save_ns = 0, load_ns = 0;
};
/// Completed evaluations of a rank in the whole run; also between steps.
struct Evaluations {
  std::uint32_t count = 0;
  std::int64_t ns = 0;
};
/// Time for which runnable threads of a rank had no processor.
struct ProcessorWaits {
  std::int64_t waited_ns = 0;  ///< summed over threads
  std::int64_t over_ns = 0;    ///< duration covered by the samples
  std::uint64_t switches = 0;  ///< involuntary context switches
  void add(const ProcessorWaits& other) noexcept {
    waited_ns += other.waited_ns;
    over_ns += other.over_ns;
    switches += other.switches;
  }
  /// The share of an interval of length `time`.
  [[nodiscard]] double waited_of(double time) const noexcept {
    return over_ns > 0 ? time * static_cast<double>(waited_ns) / static_cast<double>(over_ns) : 0;
  }
};
/// Exposed time of a rank in collectives of one group that has not all ranks.
struct GroupTime {
  std::uint64_t group = 0;           ///< GroupExposure::group
  std::vector<std::uint32_t> ranks;  ///< its members, ascending
  std::int64_t waiting_ns = 0, moving_ns = 0;
  std::uint32_t late = instrumentation::kNoId;  ///< for which it waited most there; kNoId: for none
  std::int64_t late_ns = 0;
};
struct RankSummary {
  std::uint32_t rank = 0;
  /// Parts of time.exposed_comm_ns: until the last rank had entered, and transfer (critical_path.h).
  std::int64_t waiting_ns = 0, moving_ns = 0;
  std::int64_t others_waited_ns = 0;  ///< exposed waits for this rank, summed over the others
  std::uint64_t entered_last = 0;     ///< collectives in which another rank waited for it
  TimePartition time;  ///< over measured steps with known computation; over all if it is known in none
  std::uint32_t time_steps = 0;               ///< steps in which it is known
  std::uint32_t whole_steps = 0;              ///< measured steps that lack no event up to detail `modules`
  bool copies_known = false;                  ///< else exposed copies, if any, count as time.idle_ns
  std::optional<std::int64_t> fetch_wait_ns;  ///< over the same steps, if recorded
  std::optional<std::int64_t> data_wait_ns;   ///< nullopt if it was not recorded
  Checkpoints checkpoints;
  Evaluations evaluations;
  std::int64_t clock_offset_ns = 0, clock_residual_ns = 0;
  std::optional<store::ClockDrift> clock_drift;
  std::map<instrumentation::MemoryPool, store::MemorySample> memory_peak;
  std::optional<OutsidePeak> outside;  ///< memory in no category; nullopt if it was not sampled
  std::optional<store::MemorySample> model_state_peak;  ///< nullopt if it was not measured
  bool model_states_in_part = false;                    ///< because part of it changed while unrecorded
  /// Over the whole run; nullopt if none were recorded (stages 0 to 2).
  std::optional<FetchCounterSums> fetch_counters;
  /// Micro-batches of every completed step; nullopt if none were recorded.
  std::optional<MicroBatchSums> micro_batches;
  /// Over the measured steps covered by GPU records; nullopt if there are none.
  std::optional<GpuActivity> gpu;
  /// How often its caching allocator freed its cache in the measured steps, waiting for the device each time.
  /// nullopt if it was not recorded.
  std::optional<std::uint64_t> allocator_retries;
  /// From samples in the measured steps; nullopt if its host's kernel does not report it.
  std::optional<ProcessorWaits> processor_waits;
  GpuState gpu_state;             ///< from samples in the measured steps
  std::vector<GroupTime> groups;  ///< sums over the steps of `time`
};
/// Why model states exceed their formula.
enum class MemoryCause : std::uint8_t {
  padding,            ///< shards have equal size: the last ones are filled up
  rounding,           ///< buffers consist of whole blocks
  scales,             ///< of frozen weights stored as int8, for which the formula has one byte per element
  unquantized,        ///< frozen weights in the storage type while others are int8
  pieces,             ///< first layout of stage 1: owned parameters once more, contiguous
  no_secondary,       ///< hpZ, negative: parameters without a secondary copy at the peak
  whole_gradients,    ///< computed gradients of modules, not yet reduced to their owners
  gradient_copies,    ///< compat gradient_buffers: fp32 copies for the update, minus what is freed
  cut_gradients,      ///< DeepSpeed 2: both owners of a split parameter hold its whole gradient
  earlier_gradients,  ///< DeepSpeed 2: of earlier micro-steps, besides those of the last one
  later_gradients,    ///< FSDP2, negative: gradient shards of groups that are not reduced yet at the peak
  secondary_shards,   ///< FSDP2, reshard_after_forward=N: shards for fewer ranks, from forward to backward
  zenflow_chosen,     ///< ZenFlow: a second copy of the states of selected columns
  zenflow_device_gradients,  ///< ZenFlow: owned gradients stay on the device
  zenflow_sums,              ///< ZenFlow: gradients accumulated for the CPU optimizer, beyond one set
};
/// "padding", ...; a sentence that explains it.
[[nodiscard]] const char* name_of(MemoryCause cause) noexcept;
[[nodiscard]] const char* explain(MemoryCause cause) noexcept;
struct MemoryPart {
  MemoryCause cause{};
  std::int64_t bytes = 0;
};
struct MemoryModel {
  std::string expression;  ///< e.g. "2S + 14S/n"
  std::int64_t bytes_per_rank = 0;
  std::optional<std::int64_t> measured_bytes_per_rank;  ///< largest over ranks, each at its own peak
  std::uint32_t measured_rank = 0;                      ///< the rank of that peak
  std::int64_t measured_at_ns = 0;                      ///< its time, which may differ from the pool's peak
  std::optional<double> excess_pct;
  /// Extras over the formula on that rank, by cause, and the remainder; nullopt if the recording has no
  /// parameters.
  std::vector<MemoryPart> parts;
  std::optional<std::int64_t> unexplained_bytes;
  /// The same for offloaded model states, by pool; the fields above are those of the device.
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
/// Micro-steps of all ranks that recorded or followed the fetch trace, and its invalidations.
struct TraceCounts {
  std::uint64_t record = 0, complete = 0, invalidated = 0;
};
struct Prefetch {
  std::uint64_t early = 0, just_in_time = 0, late = 0, mistargeted = 0, unused = 0;
  std::int64_t late_wait_ns = 0;
  std::int64_t vain_bytes = 0;  ///< gathered by mistargeted or unused prefetches (metrics 2.3 S)
  void add(const Prefetch& other) noexcept {
    early += other.early;
    just_in_time += other.just_in_time;
    late += other.late;
    mistargeted += other.mistargeted;
    unused += other.unused;
    late_wait_ns += other.late_wait_ns;
    vain_bytes += other.vain_bytes;
  }
};
/// A piece of a critical path and the work in it.
struct LongPathPiece {
  std::string part, label;  ///< "backward", "h.3.mlp"; label empty: no span covers most of it
  std::uint32_t rank = 0, step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};
/// Exposed time for which one rank waited for another that entered last, over the measured steps.
struct WaitedPair {
  std::uint32_t waiter = 0, late = 0;
  std::int64_t ns = 0;
};
/// What bounds the steps: means over their critical paths (critical_path.h), by name_of(PathPart).
struct PathSummary {
  /// Steps that could be replayed; if none could, those with a critical path.
  std::uint32_t steps = 0;
  std::vector<std::pair<std::string, double>> ms_per_step;  ///< parts above 0; they sum to the step
  /// How much shorter a step would be if the part took no time (free_parts.h), over the same steps; empty if
  /// none could be replayed. These do not sum to a total.
  std::vector<std::pair<std::string, double>> gain_ms_per_step;
  std::vector<LongPathPiece> longest{};  ///< over all completed steps, longest first
};
/// Operations per token, and the fraction of the hardware's peak.
struct Efficiency {
  double flop_per_token = 0;
  std::string formula;                             ///< with numbers
  std::optional<double> tflops_per_rank, mfu_pct;  ///< mfu: if the hardware's peak is known
  std::optional<double> peak_tflops;
};
/// Energy of the GPUs in the measured steps.
struct EnergyUse {
  double watts = 0;          ///< sum over ranks of the mean power between a rank's first and last sample
  std::int64_t over_ns = 0;  ///< the shortest of these intervals
  std::optional<double> tokens_per_joule;  ///< tokens/s / watts; nullopt if tokens are not known
};
/// A named deviation from the formula of the communicated volume; negative: a saving.
struct VolumePart {
  VolumeCause cause{};
  double elements_per_step = 0;
};
struct Summary {
  // run
  std::uint32_t world = 0;
  std::uint32_t copy_ranks = 0;  ///< ranks that train one copy of the model: one data-parallel group
  std::int32_t stage = 0;
  std::int64_t params = 0;
  std::string model, config_json, device;
  std::vector<ParamGroupRow> param_groups;  ///< empty if the run has no groups
  std::string framework;                    ///< as reported; empty: not given
  Framework kind = Framework::zero;
  std::uint64_t records = 0;  ///< what it can record (instrumentation/capability.h); 0: not given
  std::vector<instrumentation::NotRecorded> not_recorded;
  double link_gbps = 0, link_latency_us = 0;
  bool simulated = false;
  std::uint64_t events = 0;  ///< on which the figures are based
  store::Losses losses;
  std::optional<instrumentation::Detail> recorded_detail;  ///< the highest level with any event
  std::vector<store::Store::UnmatchedEnds> unmatched_ends;
  std::vector<std::string> problems;           ///< what is missing or damaged in the recording, as text
  std::optional<Distributions> distributions;  ///< only in a recording with limits
  std::optional<Kept> kept;                    ///< what has full detail; nullopt: everything
  /// Ranks that became slow or always were; nullopt if own times were not recorded (rank_drift.h).
  std::optional<std::vector<RankDrift>> rank_drifts;
  std::optional<NotFiniteGradients> not_finite;  ///< nullopt if the program does not record them
  std::uint32_t steps = 0;                       ///< completed
  std::uint32_t steps_measured = 0;              ///< without the first (warm-up) if there are several
  std::optional<double> step_ms_median, step_ms_p95, tokens_per_s;
  std::vector<double> loss, grad_norm, loss_scale, clip_factor;  ///< by step; NaN where missing
  std::vector<double> eval_loss;  ///< held-out loss after each step; NaN where none was measured
  std::vector<double> step_ms;
  std::vector<RankSummary> ranks;
  std::optional<MicroBatchSums> micro_batches;  ///< over all ranks and completed steps
  std::optional<double> uneven_pct;             ///< Unevenness::pct()
  std::vector<WaitedPair> waited_pairs;         ///< longest first
  bool waited_pairs_whole = true;               ///< else only each step's longest pairs: lower bounds
  LateCauses late_causes;                       ///< why the last rank of each step was late
  std::optional<PathSummary> critical_path;     ///< if the computation of the ranks was recorded
  std::optional<Efficiency> efficiency;
  /// nullopt unless every rank has two samples of energy in the measured steps, and if the run was paused.
  std::optional<EnergyUse> energy;
  MemoryModel memory_model;
  /// Communicated per rank (metrics 2.3 elems, not busbw; an all-reduce counts twice), over the steps in
  /// which it was recorded.
  std::optional<double> elements_per_step;
  /// Measured steps behind elements_per_step and its parts: those that lack none of the required events.
  std::uint32_t elements_steps = 0;
  std::uint32_t ops_steps = 0;  ///< the same for `ops`
  std::string comm_expression;  ///< "2S" or "3S"
  double expected_elements_per_step = 0;
  /// expected + these = elements_per_step, except for the unexplained rest; only non-zero ones.
  std::vector<VolumePart> volume_parts;
  std::optional<double> unexplained_elements_per_step;  ///< unknown if parameters were not recorded
  std::vector<OpRow> ops;
  /// Links by group and operation; empty without groups besides that of all ranks. From whole_summary() only:
  /// reads the collectives of the latest steps again.
  std::vector<GroupLink> links;
  /// Prefetches of all ranks; nullopt if stage 3 recorded none of its scheduler's decisions.
  std::optional<Prefetch> prefetch;
  std::uint32_t prefetch_steps = 0;  ///< its completed steps: those in which no rank lacks events
  std::uint32_t lacking_steps = 0;   ///< completed steps in which a rank lacks events
  std::optional<TraceCounts> trace;  ///< nullopt if stage 3 did not record its mode
  /// Batches of evaluations that recorded or followed the trace of evaluation; nullopt if there were none.
  /// `trace` counts the invalidations of both.
  std::optional<TraceCounts> eval_trace;
  std::optional<TraceInvalidation> first_invalidation;  ///< of the lowest rank that has one
  std::string first_invalidation_text;                  ///< explain() of it
  std::optional<Scheduling> scheduling;                 ///< from whole_summary() only: reads every decision
};
[[nodiscard]] Summary summarize(const store::Store& store);
/// Includes what only the file contains: its problems and distributions.
[[nodiscard]] Summary summarize(const store::Store& store, const store::RecordingInfo& info);
/// Everything that `summary --json` prints of a recording.
[[nodiscard]] Summary whole_summary(const store::Store& store, const store::RecordingInfo& info);
[[nodiscard]] std::string to_json(const Summary& summary);

class Digest;  // digest.h

/// A setting and its new value.
struct Change {
  std::string key;    ///< "zero_optimization.reduce_bucket_size", as for `run --set` and `what-if --set`
  std::string value;  ///< JSON
  bool operator==(const Change&) const = default;
};
/// Changes that belong together, and the sentence that describes them.
struct Advice {
  std::vector<Change> changes{};
  std::string next_step{};
};
/// Unit of a finding's bytes: memory of a rank, or communication per step.
enum class BytesOf : std::uint8_t { memory, communication };
/// A diagnosis: what, how much, why, what to do. docs/findings has a page for each id.
struct Finding {
  instrumentation::Severity severity{};
  std::string title, evidence, next_step;
  std::int64_t at_ns = 0;  ///< where to look; 0: the whole run
  std::uint32_t rank = instrumentation::kNoId;
  std::int64_t until_ns = 0;                 ///< end of where to look; 0: a moment, or the whole run
  std::string id{}, page{}, panel{};         ///< "straggler", "docs/findings/straggler.md", "timeline"
  std::optional<double> cost_ms{};           ///< per step
  std::optional<double> cost_once_ms{};      ///< once per run
  std::optional<std::int64_t> cost_bytes{};  ///< as defined by `bytes_of`
  std::vector<Change> changes{};             ///< settings that are valid for this stage, framework and cause
  /// Predicted by what-if with all changes: reduction of the step time and of the device's peak.
  std::optional<double> gain_ms{};
  std::optional<std::int64_t> gain_bytes{};
  std::string gain_basis{};             ///< the figures behind it; or why there is no prediction
  std::vector<std::string> explains{};  ///< titles of findings caused by this one
  /// The options that what-if tries (advice.h), least intrusive first; before that `changes` and `next_step`
  /// are those of the first.
  std::vector<Advice> options{};
  std::string otherwise{};  ///< what to do if none of them gains
  BytesOf bytes_of = BytesOf::memory;
  /// Whether it has a time to look at; a place may begin at time 0.
  [[nodiscard]] bool placed() const noexcept { return at_ns > 0 || until_ns > 0; }
};
/// All findings: causes before symptoms; within a severity the more expensive first. The digest covers all
/// completed steps.
[[nodiscard]] std::vector<Finding> find(const store::Store& store, const Summary& summary,
                                        const Digest& digest);
/// The same with a digest computed here.
[[nodiscard]] std::vector<Finding> find(const store::Store& store, const Summary& summary);
[[nodiscard]] std::string findings_json(const std::vector<Finding>& findings, bool simulated);

struct Difference {
  std::string metric, unit;
  std::optional<double> a, b;
  double spread_a = 0,
         spread_b = 0;  ///< half the interquartile range over steps: for display, not for the verdict
  bool lower_is_better = true;
  bool of_run = false;  ///< one value per run, without a variance
  /// 95 % interval of B - A in the figure's unit: from pairs of steps that both have, by blocks, or from
  /// repeats. nullopt with too few of them.
  std::optional<ConfidenceInterval> interval{};
  /// Whether the interval excludes zero, or the single values of the runs differ. If not, neither is better.
  [[nodiscard]] bool differs() const noexcept;
  /// The change from A to B as it is to be shown. A share changes by points: "from 47 % to 12 %" is neither
  /// -35 % nor -75 %. Everything else changes in percent of A.
  struct Shown {
    double value = 0;
    bool points = false;
    bool better = false;
  };
  /// nullopt where either is missing or not finite, or where A is 0 and the figure is no share.
  [[nodiscard]] std::optional<Shown> change() const noexcept;
};
struct Comparison {
  std::vector<Difference>
      metrics;  ///< step time, exposed communication, overlap, peak memory, flushes, tokens/s
  std::vector<std::string> config_changes;  ///< "zero_optimization.overlap_comm: true -> false"
  std::string no_config_changes;            ///< a sentence where there are none
  std::string verdict;                      ///< one sentence that the figures support
  std::string method;                       ///< how it was derived, and from how many steps
  std::vector<std::string> unlike;  ///< differences of the trainings: "model: gpt2 and gpt-mini". Empty: none
  bool simulated_a = false, simulated_b = false;
  /// Why the figures of a side are incomplete: losses and problems of its runs. Empty: complete.
  std::vector<std::string> missing_a, missing_b;
};
/// A run to compare. Nothing is owned.
struct Run {
  const store::Store* store = nullptr;
  const Summary* summary = nullptr;
  const Digest* digest = nullptr;  ///< of all its steps; null: computed when needed
};
/// Compares A with B. Medians are over the steps of all repeats. Differences are judged on pairs of steps of
/// equal number (paired_steps.h), not by the variance within one run.
[[nodiscard]] Comparison compare(const std::vector<Run>& a, const std::vector<Run>& b);

}  // namespace shardscope::analysis
