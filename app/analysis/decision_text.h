// Why something was decided, in one sentence with its numbers: the only place that words it. The Stepper, the
// Inspector, findings, report and summary use it. Numbers are the event's own fields and the limits of the
// recorded configuration.
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

/// What bounds decisions, in elements or steps. Empty where the recording has no ZeRO settings, or where the
/// value is "auto"; a sentence then leaves the number out.
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
/// Parses the configuration: call it once for many events.
[[nodiscard]] DecisionLimits limits_of(const instrumentation::RunTables& tables);

/// Why prefetching went no further: "prefetching stopped at stage3_prefetch_bucket_size: 51.2 M of 50 M
/// elements". `reached`: the prefetched elements for bucket_full, the live elements after the fetch for
/// live_limit; the others ignore it. Without it the limit alone is named.
[[nodiscard]] std::string explain(plan::PrefetchStop stop, std::optional<std::int64_t> reached,
                                  const DecisionLimits& limits);
/// Why a parameter of `elems` elements stays when its module is released, or had nothing to release.
[[nodiscard]] std::string explain(plan::KeepReason reason, std::int64_t elems, const DecisionLimits& limits);
/// Why a bucket that holds `elems` elements was reduced now. `trigger`: name and elements of the gradient
/// that did not fit, "fc1.weight (16.4 k elements)"; empty where it is not known.
[[nodiscard]] std::string explain(plan::FlushReason reason, std::int64_t elems, const std::string& trigger,
                                  const DecisionLimits& limits);
/// Why ZenFlow chose columns anew; empty where the recording does not have the cause.
[[nodiscard]] std::string explain(plan::SelectionCause cause, const DecisionLimits& limits);
/// Why ZenFlow's sum of gradients goes to the CPU optimizer.
[[nodiscard]] std::string explain(plan::UpdateCause cause, const DecisionLimits& limits);
/// Why a trace no longer holds: "expected blk.1.ln but ran blk.2.ln (trace of 40 modules)".
[[nodiscard]] std::string explain(const store::Store& store, const TraceInvalidation& invalidation);

/// The reason of one decision event, by the functions above; empty for events that carry none.
[[nodiscard]] std::string reason_of(const store::Store& store, const instrumentation::Event& event,
                                    const DecisionLimits& limits);

}  // namespace shardscope::analysis
