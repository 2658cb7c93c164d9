// Differences between DeepSpeed 0.19's stage-3 coordinator and hooks and ours, one predicate each. Code uses
// these instead of comparing Compat, so that each difference has a name and is listed once.
#pragma once

#include "runtime/plan/compat.h"

namespace shardscope::plan {

/// True: DeepSpeed's behaviour (Compat::deepspeed and, unless noted, Compat::notes). False: ours.
class SchedulerCompat {
 public:
  explicit constexpr SchedulerCompat(Compat compat) noexcept : compat_(compat) {}

  // The counter of live elements (C9).
  /// Persistent parameters are counted. Ours counts only those that max_live_elems can bound.
  [[nodiscard]] constexpr bool counts_persistent() const noexcept { return deepspeed(); }
  /// The counter starts at 0 in each iteration, whatever is live.
  [[nodiscard]] constexpr bool counter_restarts() const noexcept { return deepspeed(); }
  /// Gathers by attribute access or for a returned parameter happen outside the coordinator: uncounted.
  [[nodiscard]] constexpr bool leaves_external_gathers_uncounted() const noexcept { return deepspeed(); }

  // Prefetch (C8).
  /// A prefetch may pass max_live_elems by one parameter.
  [[nodiscard]] constexpr bool prefetch_passes_live_limit() const noexcept { return deepspeed(); }

  // Release (C11).
  /// Decisions are remembered per (module, step) for the scheduler's life, across invalidations too.
  [[nodiscard]] constexpr bool remembers_releases() const noexcept { return deepspeed(); }
  /// Parameters are kept for reuse, and returned ones kept, although more than max_live_elems are live.
  [[nodiscard]] constexpr bool keeps_beyond_live_limit() const noexcept { return deepspeed(); }
  /// With leaf modules the reuse distance is measured only by DeepSpeed's walk of the trace.
  [[nodiscard]] constexpr bool only_walks_for_reuse() const noexcept { return deepspeed(); }
  /// Persistent parameters stay only while a trace is followed. Ours stay from their first use on.
  [[nodiscard]] constexpr bool keeps_persistent_only_when_tracing_is_complete() const noexcept {
    return deepspeed();
  }
  /// Draining in-flight gathers releases persistent parameters too.
  [[nodiscard]] constexpr bool drains_persistent() const noexcept { return deepspeed(); }

  // The optimizer step.
  /// Persistent parameters are partitioned before every step. Ours stay if their values do not change.
  [[nodiscard]] constexpr bool partitions_persistent_at_update() const noexcept { return deepspeed(); }
  /// After the step each persistent parameter is gathered by its own collective.
  [[nodiscard]] constexpr bool gathers_persistent_one_by_one() const noexcept { return deepspeed(); }
  /// They are gathered again only after a step that was not skipped or after a checkpoint.
  [[nodiscard]] constexpr bool gathers_persistent_only_after_updates() const noexcept { return deepspeed(); }

  // Recomputed forwards (activation checkpointing).
  /// A recomputation is a forward like any other. Ours counts as the beginning of the module's backward.
  [[nodiscard]] constexpr bool recomputes_as_forward() const noexcept { return deepspeed(); }
  /// Frozen parameters of a recomputation also belong to the module whose backward began last.
  [[nodiscard]] constexpr bool gives_recomputed_frozen_to_backward() const noexcept { return deepspeed(); }

  // External and returned parameters (C5, P10, P11).
  /// An external parameter is registered only if it is not available when it is read.
  [[nodiscard]] constexpr bool registers_missing_only() const noexcept { return deepspeed(); }
  /// A module that reads or receives an external parameter does not keep it until its own release.
  [[nodiscard]] constexpr bool external_users_do_not_hold() const noexcept { return deepspeed(); }
  /// The root counts as running at every return, in a recomputation too.
  [[nodiscard]] constexpr bool root_always_runs() const noexcept { return deepspeed(); }
  /// Only a module that has the parameter as external keeps it, not one that owns it.
  [[nodiscard]] constexpr bool only_external_holds() const noexcept { return deepspeed(); }
  /// A parameter that was returned once counts as returned for good.
  [[nodiscard]] constexpr bool returned_for_good() const noexcept { return deepspeed(); }

  // Shards on NVMe and their host buffers (C8, C12).
  /// A gathered shard keeps its buffer until the parameter is released. Ours is free once it is copied.
  [[nodiscard]] constexpr bool gathered_shards_keep_buffers() const noexcept { return deepspeed(); }
  /// Reading ahead may use every buffer. Ours reserves one for a gather whose shard was not read ahead.
  [[nodiscard]] constexpr bool reads_ahead_into_last_buffer() const noexcept { return deepspeed(); }
  /// Shards of parameters that are gathered or in flight are read ahead too.
  [[nodiscard]] constexpr bool reads_ahead_what_is_gathered() const noexcept { return deepspeed(); }

  // Hooks (PO, P11).
  /// Of several visits of a module in one iteration the first backward alone reports its end.
  [[nodiscard]] constexpr bool reports_first_backward_only() const noexcept { return deepspeed(); }
  /// A module is fetched once more in backward for each trained parameter that it returned.
  [[nodiscard]] constexpr bool fetches_for_returned_values() const noexcept { return deepspeed(); }

  // The trace (C7, C17).
  /// One coordinator for training and evaluation, hence one trace: DeepSpeed 0.19. The documents describe one
  /// for each, as ours.
  [[nodiscard]] constexpr bool evaluates_by_trace_of_training() const noexcept {
    return compat_ == Compat::deepspeed;
  }
  /// The run ends if a module of the trace has other parameters than recorded. Compat::notes, as the default,
  /// records again.
  [[nodiscard]] constexpr bool ends_run_on_other_params() const noexcept {
    return compat_ == Compat::deepspeed;
  }

 private:
  [[nodiscard]] constexpr bool deepspeed() const noexcept { return compat_ != Compat::shardscope; }
  Compat compat_;
};

}  // namespace shardscope::plan
