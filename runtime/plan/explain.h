// Decisions in words, one sentence each, with the numbers that made them: what the dashboard, the findings
// and the report say about a plan.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/bucket.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// "60 000": groups of three digits, so that large counts can be read.
[[nodiscard]] std::string grouped(std::int64_t value);

/// Why prefetch went no further. `available_elems` is the counter after the fetch.
[[nodiscard]] std::string explain(PrefetchStop stop, std::int64_t available_elems,
                                  const SchedulerConfig& config);
/// Why a parameter of a released module stays (or was not there).
[[nodiscard]] std::string explain(KeepReason reason, const ParamPlan& param, const SchedulerConfig& config);
/// Why a bucket was reduced now.
[[nodiscard]] std::string explain(FlushReason reason, std::int64_t elems, std::int64_t bucket_elems);
/// The gradient that did not fit is named where there is one.
[[nodiscard]] std::string explain(const Flush& flush, const ModelPlan& model, std::int64_t bucket_elems);
/// Why the recorded trace was given up and what that costs.
[[nodiscard]] std::string explain(const Invalidation& invalidation, const ModelPlan& model);
/// The line that DeepSpeed prints with log_trace_cache_warnings, word for word; for parameters that differ,
/// which DeepSpeed has no such line for, one of the same form.
[[nodiscard]] std::string trace_cache_warning(const Invalidation& invalidation);
[[nodiscard]] std::string explain(TraceMode mode);

/// One fetch as a whole: what was gathered, waited for and prefetched, and why no more.
[[nodiscard]] std::string explain(const FetchPlan& plan, const ModelPlan& model,
                                  const SchedulerConfig& config);
/// One release as a whole.
[[nodiscard]] std::string explain(const ReleasePlan& plan, const ModelPlan& model,
                                  const SchedulerConfig& config);

}  // namespace shardscope::plan
