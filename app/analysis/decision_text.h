// Why a decision was taken, as one sentence with numbers: the single source of these sentences for Stepper,
// Inspector, findings, report and summary. Numbers are the event's own fields and the limits of the recorded
// configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/coordinator.h"
#include "app/store/store.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::analysis {

/// Limits of decisions, in elements or steps. nullopt if the recording has no ZeRO settings or the value is
/// "auto"; a sentence then omits the number.
struct DecisionLimits {
  bool gathers_one_by_one = false;  ///< stage3_allgather_sequential: the prefetch bucket is one element
  std::optional<std::int64_t> prefetch_bucket_elems;    ///< stage3_prefetch_bucket_size
  std::optional<std::int64_t> max_live_elems;           ///< stage3_max_live_parameters
  std::optional<std::int64_t> max_reuse_elems;          ///< stage3_max_reuse_distance
  std::optional<std::int64_t> param_persistence_elems;  ///< stage3_param_persistence_threshold
  std::optional<std::int64_t> reduce_bucket_elems;      ///< reduce_bucket_size
  std::optional<std::int64_t> select_interval_steps;    ///< zenflow.select_interval
  std::optional<std::int64_t> update_interval_steps;    ///< zenflow.update_interval
  std::optional<std::int64_t> feedback_reset_steps;     ///< zeropp_loco_param.reset_T
};
/// Parses the configuration: call it once, not per event.
[[nodiscard]] DecisionLimits limits_of(const instrumentation::RunTables& tables);

/// Why prefetching stopped: "prefetching stopped at stage3_prefetch_bucket_size: 51.2 M of 50 M elements".
/// `reached`: prefetched elements for bucket_full, live elements after the fetch for live_limit, ignored for
/// other reasons. Without it only the limit is named.
[[nodiscard]] std::string explain(plan::PrefetchStop stop, std::optional<std::int64_t> reached,
                                  const DecisionLimits& limits);
/// Why a parameter of `elems` elements stays when its module is released, or was not gathered at all.
[[nodiscard]] std::string explain(plan::KeepReason reason, std::int64_t elems, const DecisionLimits& limits);
/// Why a bucket of `elems` elements was reduced now. `trigger`: name and elements of the gradient that did
/// not fit, "fc1.weight (16.4 k elements)"; empty if unknown.
[[nodiscard]] std::string explain(plan::FlushReason reason, std::int64_t elems, const std::string& trigger,
                                  const DecisionLimits& limits);
/// Why ZenFlow selected columns again; empty if the cause was not recorded.
[[nodiscard]] std::string explain(plan::SelectionCause cause, const DecisionLimits& limits);
/// Why ZenFlow passes its gradient sum to the CPU optimizer.
[[nodiscard]] std::string explain(plan::UpdateCause cause, const DecisionLimits& limits);
/// Why a fetch trace was invalidated: "expected blk.1.ln but ran blk.2.ln (trace of 40 modules)".
[[nodiscard]] std::string explain(const store::Store& store, const TraceInvalidation& invalidation);

/// The reason of a decision event, by the functions above; empty for events without a reason.
[[nodiscard]] std::string reason_of(const store::Store& store, const instrumentation::Event& event,
                                    const DecisionLimits& limits);

}  // namespace shardscope::analysis
