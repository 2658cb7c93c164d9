// The stage-3 scheduler: what to gather, wait for, prefetch and release at each module boundary
// (docs/zero.md C1-C17). Pure and deterministic: it takes what happens and returns what to do. It
// knows no device and no clock, so the engine, the simulator, the tests and the dashboard share it.
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

/// Why the prefetcher stopped where it did; shown in words by the dashboard.
enum class PrefetchStop : std::uint8_t {
  disabled,      ///< prefetch bucket size 0
  no_trace,      ///< not in COMPLETE mode
  end_of_trace,  ///< nothing left to fetch in the recorded order
  bucket_full,   ///< stage3_prefetch_bucket_size reached
  live_limit,    ///< stage3_max_live_parameters reached
  offloaded,     ///< next partition still on NVMe
  returned,      ///< no fetch: a module returned a parameter, and only that one is looked at
};

/// Why a parameter of the released module stays.
enum class KeepReason : std::uint8_t {
  persistent,       ///< at or under stage3_param_persistence_threshold
  reused_soon,      ///< needed again within stage3_max_reuse_distance
  already_fetched,  ///< a prefetch already counted on it for a later use
  in_use,           ///< another active module uses it
  external,         ///< a module returned it: it is kept for what runs around that module (P11)
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
  std::vector<bool> on_nvme;       ///< by ParamId: the shard is on NVMe; empty: none does
  std::uint32_t swap_buffers = 0;  ///< host buffers that shards on NVMe pass through
};

struct Gather {
  GatherId id = kNone<GatherId>;  ///< kNone: nothing to gather
  std::vector<ParamId> params;    ///< one coalesced group, in place, ascending id
  std::int64_t elems = 0;         ///< sum of full parameter sizes without padding
};

/// Why a recorded trace no longer holds.
enum class InvalidationCause : std::uint8_t {
  module_differs,   ///< another module than the recorded one
  trace_too_short,  ///< more modules than were recorded
  params_differ,    ///< the module has parameters (external ones) that the trace does not know
};

/// What was in flight and is drained: wait for the gathers, then free the parameters.
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
  std::vector<GatherId> wait_for;  ///< gathers behind them that no fetch has waited for
  std::vector<ParamId> released;   ///< in-flight parameters waited for and released
  std::vector<ParamId> completed;  ///< become available through these waits and stay
};

/// What to do before a module runs. The host does the parts in the order of the fields and waits for none of
/// them (but under compat.max_ongoing_fetch_events, C6); streams wait for one another as each field says.
struct FetchPlan {
  /// 1. The compute stream waits for invalidated->wait_for, then invalidated->released are freed.
  std::optional<Invalidation> invalidated;
  /// 2. Queued on the gather stream: what the module lacks. It runs after earlier gathers, beside
  /// computation.
  Gather gather;
  /// Parameters whose in-flight handle this fetch waits for, in order: DeepSpeed's list, which C6 counts.
  std::vector<ParamId> wait;
  /// 3. The compute stream waits for these, the distinct gathers behind `wait`: `gather`, and earlier
  /// prefetches of the same parameters. The module's kernels are queued after this wait.
  std::vector<GatherId> wait_for;
  std::vector<ParamId> completed;  ///< become available through those waits
  /// 4. Queued on the gather stream: for later modules. No stream waits for it here, unless 5 names it.
  Gather prefetch;
  PrefetchStop stop = PrefetchStop::disabled;  ///< why `prefetch` holds no more
  /// 5. The compute stream waits for these: the prefetch, without overlap_comm ([Note: overlap_comm]). Its
  /// parameters stay in flight to the scheduler; the module that uses them then waits for nothing.
  std::vector<GatherId> wait_at_once;
  /// 6. Queued on the NVMe stream: shards to read to host memory for a later gather (C12).
  std::vector<ParamId> read_ahead;
  std::int64_t available_elems = 0;  ///< running counter after this fetch (C9)
  std::int64_t trace_step = 0;       ///< place of the module in this iteration's visits, from 0
};

/// What becomes of a parameter that a module returned.
struct ReturnPlan {
  FetchPlan fetch;  ///< to issue and wait for; empty where it is available
  /// The running module that it is kept for; kNone where none runs around the one that returned it.
  ModuleId holder = kNone<ModuleId>;
  bool moved = false;  ///< it is the holder's only from now on
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

/// Which parameters have other values after a step or after weights were set.
enum class WeightChange : std::uint8_t {
  none,       ///< the step was skipped
  trainable,  ///< the optimizer's
  all,        ///< set from outside, frozen ones too
};

/// One rank's scheduler. Calls follow the program order, which is the same on every rank, and so are the
/// answers.
///
/// Training and evaluation have a trace each (C17), which begin_iteration() chooses between: an evaluation
/// between two steps records, follows and breaks its own only, so training goes on by the trace that it had.
/// What is gathered is one state for both. Compat::deepspeed has one trace for both, as DeepSpeed 0.19.
///
/// Compat::deepspeed (and notes) repeats DeepSpeed 0.19 exactly, its counter included: parameters gathered by
/// attribute access or after the optimizer step are not counted but their release is, the counter starts
/// at 0 in each iteration, prefetch may pass either limit by one parameter, and release decisions are
/// remembered per (module, step) for the scheduler's life. What is frozen and fetched for a recomputation
/// belongs to the module whose backward began last and has not ended as well: its release is the first that
/// frees it, whatever is used soon (C11). With checkpointed blocks in a list that is mostly the root, so they
/// stay to the end of backward. Compat::deepspeed alone also ends the run where DeepSpeed does: fetch()
/// throws std::runtime_error ("tracing error at step ...") when a module of a recorded trace has other
/// parameters than were recorded, and changes nothing.
///
/// Compat::shardscope decides alike except that
/// - the counter is the truth: every gathered parameter that is not persistent, in flight or available;
/// - prefetch never passes max_live_elems, and a parameter is not kept for reuse while more is live, so at
///   most max_live_elems and the parameters of the modules now running are live at any time;
/// - persistent parameters stay from their first use on, also while the trace is recorded, and over a step
///   that does not change them: one that is skipped, and any if they are frozen;
/// - nothing is remembered across iterations but the trace;
/// - what is frozen is released after a recomputation by the rule for everything else;
/// - a parameter that a module returned (P11) is not released by modules, as in DeepSpeed, but only while no
///   more than max_live_elems are live; beyond that, those that do not run release it like any other.
///   Unregistering it ends that; DeepSpeed keeps it from its first return on for good.
class FetchScheduler {
 public:
  /// `world` decides nothing today: decisions count full elements. Throws std::invalid_argument on a
  /// limit below 0.
  FetchScheduler(const ModelPlan& model, std::uint32_t world, SchedulerConfig config);
  ~FetchScheduler();
  FetchScheduler(const FetchScheduler&) = delete;
  FetchScheduler& operator=(const FetchScheduler&) = delete;

  /// Root forward of every micro-step (C4), and of every batch of an evaluation. Returns the trace mode it
  /// starts in. drained() says what it drained.
  TraceMode begin_iteration(ModelMode mode = ModelMode::training);
  /// What the last begin_iteration() drained: gathers that no module of the last iteration used.
  [[nodiscard]] const Drain& drained() const noexcept;
  /// Pre-forward or pre-backward of a module with hooks. Throws std::logic_error, and changes nothing, for a
  /// backward in evaluation: no forward was kept for it.
  [[nodiscard]] FetchPlan fetch(ModuleId module, Direction direction);
  /// Pre-forward of a module whose forward runs again inside backward (activation checkpointing).
  [[nodiscard]] FetchPlan fetch_recomputed(ModuleId module);
  /// Post-forward or post-backward.
  [[nodiscard]] ReleasePlan release(ModuleId module, Direction direction);
  /// Post-forward of what fetch_recomputed() fetched.
  [[nodiscard]] ReleasePlan release_recomputed(ModuleId module);
  /// A parameter read by attribute access in the forward of `module` (C5, P10): registers it as external
  /// and returns the gather to issue and wait for (empty if available).
  [[nodiscard]] FetchPlan fetch_external(ParamId param, ModuleId module);
  /// deepspeed.zero.register_external_parameter: `module` fetches and releases `param` of another module with
  /// its own (P11), though nothing has read it there yet. Between iterations.
  void register_external(ParamId param, ModuleId module);
  /// The forward of `module` ends and returns `param` (P11), between its work and its release(). `around`:
  /// the modules whose forward is running, outermost first, without `module` (ForwardStack). Where none of
  /// them has `param` as external already, it is from now on fetched with the innermost one, `module` loses
  /// it if it was external there, and it is gathered if it is not there. Compat::deepspeed always counts the
  /// root as running, in a recomputation too, where the default has no module to keep it for.
  [[nodiscard]] ReturnPlan return_param(ParamId param, ModuleId module, std::span<const ModuleId> around);
  /// The reverse, and of what fetch_external() and return_param() registered: a later read or
  /// return registers it again. A trace recorded
  /// with it may go on fetching it ahead for its other users; where it no longer fits it is invalidated.
  /// Throws std::invalid_argument when `param` is no registered external parameter of `module`,
  /// std::logic_error when `module` is using it.
  void unregister_external(ParamId param, ModuleId module);
  /// End of backward: modules whose inputs need no gradient never got a post-backward (P12).
  [[nodiscard]] std::vector<ParamId> release_leftovers();
  /// Everything gathered is partitioned, persistent parameters too. Those still in flight are among them:
  /// wait for in_flight_gathers() before.
  [[nodiscard]] std::vector<ParamId> release_all();
  /// Start of the optimizer step: release_all(), but by default persistent parameters stay until it is known
  /// whether their values change.
  [[nodiscard]] std::vector<ParamId> begin_update();
  /// It is known: persistent parameters that stayed with old values are partitioned.
  [[nodiscard]] std::vector<ParamId> end_update(WeightChange change);
  /// End of the optimizer step: the persistent parameters to gather again (not counted, C9); none where all
  /// stayed. They are available from then on: the caller lets the compute stream wait for this gather.
  /// DeepSpeed does not come here after a skipped step: the next iteration fetches them.
  [[nodiscard]] Gather gather_persistent();
  /// Gathers issued that no fetch has waited for yet, in issue order.
  [[nodiscard]] std::vector<GatherId> in_flight_gathers() const;

  /// Mode of the trace of the iteration that runs, or ran last.
  [[nodiscard]] TraceMode mode() const noexcept;
  /// Mode of the trace that an iteration in `mode` would go on with.
  [[nodiscard]] TraceMode mode(ModelMode mode) const noexcept;
  [[nodiscard]] ParamStatus status(ParamId param) const noexcept;
  [[nodiscard]] bool persistent(ParamId param) const noexcept;
  [[nodiscard]] std::int64_t available_elems() const noexcept;
  /// Full elements in flight or available now, persistent parameters included: what memory holds, whatever
  /// the counter of `compat` says.
  [[nodiscard]] std::int64_t resident_elems() const noexcept;
  /// The parameters that this module fetches: its own, everything below a leaf module, external ones.
  [[nodiscard]] const std::vector<ParamId>& params_of(ModuleId module) const noexcept;
  /// The step of the trace that comes next.
  [[nodiscard]] std::int64_t trace_step() const noexcept;
  /// The recorded module order; empty unless COMPLETE. Lets a viewer say what comes next.
  [[nodiscard]] const std::vector<ModuleId>& trace() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::plan
