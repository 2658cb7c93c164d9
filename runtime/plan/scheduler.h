// The stage-3 scheduler: what to gather, wait for, prefetch and release at each module boundary (docs/zero.md
// C1-C17). Pure and deterministic: a call reports an event and returns the actions to take. No device, no
// clock: the engine, the simulator, the tests and the window share it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan/compat.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/model_mode.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/overlap.h"

namespace shardscope::plan {

enum class ParamStatus : std::uint8_t { not_available = 0, in_flight = 1, available = 2 };
enum class TraceMode : std::uint8_t { invalid = 0, record = 1, complete = 2 };

/// Why the prefetcher stopped; the window shows it as a sentence.
enum class PrefetchStop : std::uint8_t {
  disabled,      ///< prefetch bucket size 0
  no_trace,      ///< not in COMPLETE mode
  end_of_trace,  ///< nothing left to fetch in the recorded order
  bucket_full,   ///< stage3_prefetch_bucket_size reached
  live_limit,    ///< stage3_max_live_parameters reached
  offloaded,     ///< next partition still on NVMe
  returned,      ///< no fetch of a module: only a returned parameter is considered
};

/// Why a parameter of a released module is kept.
enum class KeepReason : std::uint8_t {
  persistent,       ///< at or under stage3_param_persistence_threshold
  reused_soon,      ///< needed again within stage3_max_reuse_distance
  already_fetched,  ///< a prefetch relies on it for a later use
  in_use,           ///< another active module uses it
  external,         ///< a module returned it: it is kept for the modules around that one (P11)
  not_available,    ///< nothing to release
  reshard_off,      ///< attached frameworks: configured to keep it (FSDP2's reshard_after_forward)
};

struct SchedulerConfig {
  std::int64_t prefetch_bucket_elems = 50'000'000;
  std::int64_t max_live_elems = 1'000'000'000;
  std::int64_t max_reuse_distance_elems = 1'000'000'000;
  std::int64_t param_persistence_elems = 100'000;
  std::int64_t model_persistence_elems = std::numeric_limits<std::int64_t>::max();
  Compat compat = Compat::shardscope;
  Overlap overlap = Overlap::on;   ///< [Note: overlap_comm]: when a prefetch is waited for
  std::vector<bool> on_nvme;       ///< by ParamId: the shard is on NVMe; empty: none is
  std::uint32_t swap_buffers = 0;  ///< host buffers that shards on NVMe pass through
};

struct Gather {
  GatherId id = kNone<GatherId>;  ///< kNone: nothing to gather
  std::vector<ParamId> params;    ///< one coalesced collective, gathered in place, ascending id
  std::int64_t elems = 0;         ///< sum of full parameter sizes without padding
};

/// Why a recorded trace was invalidated.
enum class InvalidationCause : std::uint8_t {
  module_differs,   ///< another module than the recorded one
  trace_too_short,  ///< more modules than were recorded
  params_differ,    ///< the module has parameters (external ones) that are not in the trace
};

/// In-flight gathers to drain: wait for them, then free `released`.
struct Drain {
  std::vector<GatherId> wait_for;
  std::vector<ParamId> released;
  std::vector<ParamId> completed;  ///< become available through these waits and stay
};

struct Invalidation {
  InvalidationCause cause = InvalidationCause::module_differs;
  std::int64_t trace_step = 0;
  std::int64_t recorded = 0;            ///< modules in the trace that was invalidated
  ModuleId expected = kNone<ModuleId>;  ///< kNone: the trace was too short
  ModuleId got{};
  std::vector<GatherId> wait_for;  ///< gathers of `released` and `completed` that no fetch has waited for
  std::vector<ParamId> released;   ///< in-flight parameters waited for and released
  std::vector<ParamId> completed;  ///< become available through these waits and stay
};

/// What to do before a module runs. The host does the parts in the order of the fields and waits for none of
/// them (but under compat.max_ongoing_fetch_events, C6); streams wait for one another as each field says.
struct FetchPlan {
  /// 1. The compute stream waits for invalidated->wait_for, then invalidated->released are freed.
  std::optional<Invalidation> invalidated;
  /// 2. Queued on the gather stream: missing parameters. It runs after earlier gathers, overlapping
  ///    computation.
  Gather gather;
  /// Parameters whose in-flight handle this fetch waits for, in order: DeepSpeed's list, which C6 counts.
  std::vector<ParamId> wait;
  /// 3. The compute stream waits for these, the distinct gathers behind `wait`: `gather`, and earlier
  /// prefetches of the same parameters. The module's kernels are queued after this wait.
  std::vector<GatherId> wait_for;
  std::vector<ParamId> completed;  ///< become available through those waits
  /// 4. Queued on the gather stream: for later modules. No stream waits for it here, unless 5 names it.
  Gather prefetch;
  PrefetchStop stop = PrefetchStop::disabled;  ///< why `prefetch` ends where it does
  /// 5. The compute stream waits for these: the prefetch, without overlap_comm ([Note: overlap_comm]). Its
  /// parameters stay in flight to the scheduler; the module that uses them then waits for nothing.
  std::vector<GatherId> wait_at_once;
  /// 6. Queued on the NVMe stream: shards to read to host memory for a later gather (C12).
  std::vector<ParamId> read_ahead;
  std::int64_t available_elems = 0;  ///< running counter after this fetch (C9)
  std::int64_t trace_step = 0;       ///< place of the module in this iteration's visits, from 0
};

/// What to do with a parameter that a module returned.
struct ReturnPlan {
  FetchPlan fetch;  ///< to issue and wait for; empty where it is available
  /// The running module that it is kept for; kNone where none runs around the one that returned it.
  ModuleId holder = kNone<ModuleId>;
  bool moved = false;  ///< the holder has it as external from now on
};

struct Kept {
  ParamId param{};
  KeepReason reason{};
};
struct ReleasePlan {
  std::vector<ParamId> released;
  std::vector<Kept> kept;
  std::int64_t available_elems = 0;
};

/// Which parameters changed by a step or by setting weights.
enum class WeightChange : std::uint8_t {
  none,       ///< the step was skipped
  trainable,  ///< the optimizer's
  all,        ///< set by the caller, frozen ones too
};

/// One rank's scheduler. Calls follow the program order, which is the same on every rank, and so are the
/// results.
///
/// Training and evaluation have a trace each (C17), which begin_iteration() chooses between: an evaluation
/// between two steps records, follows and breaks its own only, so training goes on by the trace that it had.
/// The set of gathered parameters is shared by both. Compat::deepspeed has one trace for both, as DeepSpeed
/// 0.19.
///
/// Compat::deepspeed (and notes) repeats DeepSpeed 0.19 exactly, its counter included: parameters gathered by
/// attribute access or after the optimizer step are not counted but their release is, the counter starts at 0
/// in each iteration, prefetch may pass either limit by one parameter, and release decisions are remembered
/// per (module, step) for the scheduler's life. Frozen parameters fetched for a recomputation also belong to
/// the module whose backward began last and has not ended: its release is the first that frees them, whatever
/// is used soon (C11). With checkpointed blocks in a list that is mostly the root, so they stay to the end of
/// backward. Compat::deepspeed alone also ends the run where DeepSpeed does: fetch() throws
/// std::runtime_error ("tracing error at step ...") when a module of a recorded trace has other parameters
/// than were recorded, and changes nothing.
///
/// Compat::shardscope makes the same decisions except that
/// - the counter is the truth: every gathered parameter that is not persistent, in flight or available;
/// - prefetch never passes max_live_elems, and a parameter is not kept for reuse while more is live, so at
///   most max_live_elems and the parameters of the modules now running are live at any time;
/// - persistent parameters stay from their first use on, also while the trace is recorded, and over a step
///   that does not change them: one that is skipped, and any if they are frozen;
/// - only the trace is remembered across iterations;
/// - frozen parameters are released after a recomputation by the same rule as all others;
/// - a parameter that a module returned (P11) is not released by modules, as in DeepSpeed, but only while no
///   more than max_live_elems are live; beyond that, modules that do not run release it like any other.
///   Unregistering it ends that; DeepSpeed keeps it for good from its first return on.
class FetchScheduler {
 public:
  /// `world` is only validated: decisions count full elements. Throws std::invalid_argument on a limit below
  /// 0.
  FetchScheduler(const ModelPlan& model, std::uint32_t world, SchedulerConfig config);
  ~FetchScheduler();
  FetchScheduler(const FetchScheduler&) = delete;
  FetchScheduler& operator=(const FetchScheduler&) = delete;

  /// Root forward of every micro-step (C4), and of every batch of an evaluation. Returns the trace mode it
  /// starts in. drained() returns the gathers it drained.
  TraceMode begin_iteration(ModelMode mode = ModelMode::training);
  /// Gathers drained by the last begin_iteration(): no module of the previous iteration used them.
  [[nodiscard]] const Drain& drained() const noexcept;
  /// Pre-forward or pre-backward of a module with hooks. Throws std::logic_error, and changes nothing, for a
  /// backward in evaluation: no forward was kept for it.
  [[nodiscard]] FetchPlan fetch(ModuleId module, Direction direction);
  /// Pre-forward of a module whose forward runs again inside backward (activation checkpointing).
  [[nodiscard]] FetchPlan fetch_recomputed(ModuleId module);
  /// Post-forward or post-backward.
  [[nodiscard]] ReleasePlan release(ModuleId module, Direction direction);
  /// Post-forward of a module fetched by fetch_recomputed().
  [[nodiscard]] ReleasePlan release_recomputed(ModuleId module);
  /// A parameter read by attribute access in the forward of `module` (C5, P10): registers it as external
  /// and returns the gather to issue and wait for (empty if available).
  [[nodiscard]] FetchPlan fetch_external(ParamId param, ModuleId module);
  /// deepspeed.zero.register_external_parameter: `module` fetches and releases `param` of another module with
  /// its own (P11), before anything has read it there. Call between iterations.
  void register_external(ParamId param, ModuleId module);
  /// The forward of `module` ends and returns `param` (P11), between its work and its release(). `around`:
  /// the modules whose forward is running, outermost first, without `module` (ForwardStack). If none of them
  /// has `param` as external already, it is from now on fetched with the innermost one, and `module` loses it
  /// if it was external there. It is gathered if it is not available. Compat::deepspeed always counts the
  /// root as running, also in a recomputation, where the default has no module to keep it for.
  [[nodiscard]] ReturnPlan return_param(ParamId param, ModuleId module, std::span<const ModuleId> around);
  /// Undoes register_external(), fetch_external() and return_param(); a later read or return registers it
  /// again. A trace recorded with it may still prefetch it for its other users; where it no longer matches it
  /// is invalidated. Throws std::invalid_argument when `param` is no registered external parameter of
  /// `module`, std::logic_error when `module` is using it.
  void unregister_external(ParamId param, ModuleId module);
  /// End of backward: modules whose inputs need no gradient never got a post-backward (P12).
  [[nodiscard]] std::vector<ParamId> release_leftovers();
  /// Releases all gathered parameters, persistent ones and those in flight too: wait for in_flight_gathers()
  /// before.
  [[nodiscard]] std::vector<ParamId> release_all();
  /// Start of the optimizer step: release_all(), but by default persistent parameters stay until end_update()
  /// tells whether their values changed.
  [[nodiscard]] std::vector<ParamId> begin_update();
  /// End of the update: releases persistent parameters whose values are out of date.
  [[nodiscard]] std::vector<ParamId> end_update(WeightChange change);
  /// End of the optimizer step: the persistent parameters to gather again (not counted, C9); none if all
  /// stayed. They are available at once: the caller makes the compute stream wait for this gather. DeepSpeed
  /// does not do this after a skipped step: the next iteration fetches them.
  [[nodiscard]] Gather gather_persistent();
  /// Gathers issued that no fetch has waited for yet, in issue order.
  [[nodiscard]] std::vector<GatherId> in_flight_gathers() const;

  /// Trace mode of the current iteration, or of the last one.
  [[nodiscard]] TraceMode mode() const noexcept;
  /// Mode of the trace that an iteration in `mode` uses.
  [[nodiscard]] TraceMode mode(ModelMode mode) const noexcept;
  [[nodiscard]] ParamStatus status(ParamId param) const noexcept;
  [[nodiscard]] bool persistent(ParamId param) const noexcept;
  [[nodiscard]] std::int64_t available_elems() const noexcept;
  /// Full elements in flight or available now, persistent parameters included: what memory holds, independent
  /// of the counter of `compat`.
  [[nodiscard]] std::int64_t resident_elems() const noexcept;
  /// The parameters that this module fetches: its own, those below a leaf module, external ones.
  [[nodiscard]] const std::vector<ParamId>& params_of(ModuleId module) const noexcept;
  /// Index of the next step in the trace.
  [[nodiscard]] std::int64_t trace_step() const noexcept;
  /// The recorded module order; empty unless COMPLETE. A viewer can show the next modules from it.
  [[nodiscard]] const std::vector<ModuleId>& trace() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::plan
