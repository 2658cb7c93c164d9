// Counters and trace invalidations of stage 3's coordinator. decision_text.h words the reasons.
#pragma once

#include <cstdint>
#include <optional>

#include "app/store/store.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {

/// DeepSpeed's eight counters of one rank (plan::FetchCounter defines each, with its unit), over the
/// micro-steps for which all eight were recorded.
struct FetchCounterSums {
  std::uint64_t micro_steps = 0;
  plan::FetchCounts total{};  ///< over these
  plan::FetchCounts last{};   ///< of the last micro-step: what DeepSpeed logs for one iteration
  void add(const FetchCounterSums& later);
};
/// Sums of one rank's counters within [begin, end); nullopt if none were recorded.
[[nodiscard]] std::optional<FetchCounterSums> fetch_counters(const store::Store& store, std::uint32_t rank,
                                                             std::int64_t begin_ns, std::int64_t end_ns);

/// The counters of one micro-step.
struct MicroStepCounters {
  std::uint32_t micro_step = 0;
  plan::FetchCounts counts{};
};
/// Counters of the micro-step that a rank runs at `at_ns`, or of the previous one if these are not recorded
/// (they are emitted at the end of its backward); nullopt if neither has all eight.
[[nodiscard]] std::optional<MicroStepCounters> fetch_counters_at(const store::Store& store,
                                                                 std::uint32_t rank, std::int64_t at_ns);

/// A trace_invalidated event.
struct TraceInvalidation {
  std::uint32_t rank = 0;
  std::int64_t at_ns = 0;
  plan::InvalidationCause cause{};
  std::uint32_t trace_step = 0;
  std::uint32_t expected = instrumentation::kNoId;  ///< module; kNoId: the trace was too short
  std::uint32_t got = instrumentation::kNoId;
  std::optional<std::int64_t> recorded;  ///< modules in the trace; nullopt if the program does not report it
};
[[nodiscard]] TraceInvalidation read_invalidation(std::uint32_t rank, const instrumentation::Event& event);
/// A rank's last invalidation up to `at_ns`, in the micro-step that runs then or in the previous one (the
/// host is ahead of the streams); nullopt if there is none.
[[nodiscard]] std::optional<TraceInvalidation> invalidation_before(const store::Store& store,
                                                                   std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::analysis
