// The state of FetchScheduler: status of each parameter, gathers in flight, the trace being followed.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_compat.h"
#include "runtime/plan/shard_swap.h"
#include "runtime/plan/trace.h"

namespace shardscope::plan {

inline constexpr std::int64_t kNeverFetched = -10'000'000'000;  ///< a parameter not fetched in this iteration

enum class Persistent { kept, released };  ///< what release_every() does with persistent parameters

template <typename Id>
bool contains_id(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

template <typename Id>
void erase_id(std::vector<Id>& ids, Id id) {
  ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
}

/// [Note: two kinds of in-flight] A coalesced gather completes as a whole at the first wait for one of its
/// parameters. Its other parameters are available from then on, but each stays *registered* until its own
/// module fetches it; waiting for those finds the gather complete. `status` is what memory holds,
/// `registered` what a fetch checks.
struct FetchScheduler::State {
  struct Param {
    std::int64_t elems = 0;
    ParamStatus status = ParamStatus::not_available;
    bool persistent = false;
    bool returned = false;  ///< a module returned it to another: DeepSpeed's is_external_param
    bool trainable = true;
    GatherId registered = kNone<GatherId>;
    std::uint64_t registered_order = 0;        ///< when it was registered, for draining in order
    std::int64_t fetched_for = kNeverFetched;  ///< latest step of the trace that a fetch or prefetch covers
    std::vector<ModuleId> active;              ///< modules between fetch and release that use it
  };
  struct Pending {
    std::vector<ParamId> params;
    bool complete = false;
    std::size_t registered = 0;  ///< parameters still registered with it
  };
  struct Decision {
    std::vector<ParamId> release;
    std::vector<Kept> kept;
  };
  /// The state of a DeepSpeed coordinator that outlives an iteration; one per model mode.
  struct Coordinator {
    TraceMode mode = TraceMode::invalid;
    Trace trace;
    std::unordered_map<std::uint64_t, Decision> memo;
  };

  SchedulerConfig config;
  const SchedulerCompat compat;
  std::vector<Param> params;
  std::vector<std::int64_t> elems;
  std::vector<std::string> param_names, module_paths;  ///< by id, for errors
  std::vector<std::vector<ParamId>> module_params;     ///< with external ones, ascending
  std::vector<std::vector<ParamId>> own_params;        ///< without external ones
  std::vector<std::vector<ParamId>> subtree_params;
  std::vector<std::vector<ParamId>> direct_params;  ///< without external ones, also of a leaf module
  std::vector<bool> leaf;
  bool any_leaf = false;
  std::map<GatherId, Pending> gathers;
  std::uint32_t next_gather = 0;
  std::uint64_t next_registration = 0;

  std::array<Coordinator, 2> coordinators;         ///< by ModelMode
  Coordinator* coordinator = coordinators.data();  ///< of the current iteration
  ModelMode model_mode = ModelMode::training;      ///< of that iteration
  std::deque<TracedParam> queue;
  std::int64_t step = 0;
  std::int64_t available = 0;  ///< the counter of C9
  std::int64_t resident = 0;
  std::vector<ModuleId> active_backward;  ///< in order of first fetch
  /// DeepSpeed's ds_recompute_parameters: frozen ones that a module in backward has to release as well.
  std::map<ModuleId, std::vector<ParamId>> recomputed;
  Drain drained;

  ShardSwap swap;

  State(const ModelPlan& model, SchedulerConfig settings);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Param& at(ParamId id) { return params[raw(id)]; }
  [[nodiscard]] bool counted(const Param& param) const {
    return compat.counts_persistent() || !param.persistent;
  }

  // Gathering.
  Gather issue(const std::vector<ParamId>& wanted);
  /// C11a: after a gather by its coordinator DeepSpeed returns the swap buffers of persistent parameters.
  void give_back_persistent(const Gather& gather);
  void complete(GatherId id, std::vector<ParamId>& completed);
  void unregister(Param& param);
  bool wait(ParamId id, std::vector<GatherId>& wait_for, std::vector<ParamId>& completed);
  bool release_param(ParamId id);
  /// Completes every gather, releases every parameter and drops shards read ahead. Returns the released ones,
  /// ascending.
  std::vector<ParamId> release_every(Persistent persistent);
  Drain drain();

  // The trace.
  [[nodiscard]] std::size_t coordinator_of(ModelMode in) const {
    return in == ModelMode::evaluation && !compat.evaluates_by_trace_of_training() ? 1 : 0;
  }
  void forget_decisions() {
    for (Coordinator& each : coordinators) each.memo.clear();
  }
  std::optional<Invalidation> check_trace(ModuleId module);
  Invalidation invalidate(InvalidationCause cause, ModuleId expected, ModuleId got);
  [[nodiscard]] std::vector<ParamId> not_fetched_yet(ModuleId module);
  /// The next `distinct` different parameters of the queue, ascending; fewer where it ends.
  [[nodiscard]] std::vector<ParamId> next_in_queue(std::size_t distinct) const;
  [[noreturn]] void tracing_error(ModuleId module, const std::vector<ParamId>& wanted,
                                  const std::vector<ParamId>& queued) const;
  void pop_from_queue(std::size_t distinct);

  // Prefetch and release.
  enum class Visit : std::uint8_t { forward, backward, recompute };
  FetchPlan fetch(ModuleId module, Visit visit);
  ReleasePlan release(ModuleId module, Visit visit);
  /// Removes and returns the recomputed parameters that `module` has to release as well.
  std::vector<ParamId> take_recomputed(ModuleId module);
  Gather prefetch(PrefetchStop& stop);
  [[nodiscard]] std::vector<ParamId> read_ahead();
  [[nodiscard]] Decision decide_release(ModuleId module);
  [[nodiscard]] bool external_to(ParamId param, ModuleId module) const;
  [[nodiscard]] bool stays_external(const Param& param) const;
  [[nodiscard]] KeepReason why_kept(ParamId param) const;
  [[nodiscard]] bool met_before_the_limit(ParamId param, ModuleId releasing) const;
  [[nodiscard]] bool reused_soon(ParamId param, ModuleId releasing) const;
};

}  // namespace shardscope::plan
