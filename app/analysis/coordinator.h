// What stage 3's coordinator counted, and where it invalidated a trace. decision_text.h says why.
#pragma once

#include <cstdint>
#include <optional>

#include "app/store/store.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {

/// DeepSpeed's eight counters of one rank (plan::FetchCounter says what each counts, and in which unit). Only
/// micro-steps of which all eight were recorded are in here.
struct FetchCounterSums {
  std::uint64_t micro_steps = 0;
  plan::FetchCounts total{};  ///< over these
  plan::FetchCounts last{};   ///< the last of these: what DeepSpeed logs of one iteration
  void add(const FetchCounterSums& later);
};
/// Sums of one rank's counters within [begin, end); nothing where none was recorded.
[[nodiscard]] std::optional<FetchCounterSums> fetch_counters(const store::Store& store, std::uint32_t rank,
                                                             std::int64_t begin_ns, std::int64_t end_ns);

/// The counters of one micro-step.
struct MicroStepCounters {
  std::uint32_t micro_step = 0;
  plan::FetchCounts counts{};
};
/// Counters of the micro-step that runs on a rank at `at_ns`, or where these are not recorded (they come at
/// the end of its backward) of the one before; nothing where neither has all eight.
[[nodiscard]] std::optional<MicroStepCounters> fetch_counters_at(const store::Store& store,
                                                                 std::uint32_t rank, std::int64_t at_ns);

/// A trace_invalidated event.
struct TraceInvalidation {
  std::uint32_t rank = 0;
  std::int64_t at_ns = 0;
  plan::InvalidationCause cause{};
  std::uint32_t trace_step = 0;
  std::uint32_t expected = instrumentation::kNoId;  ///< module; none: the trace was too short
  std::uint32_t got = instrumentation::kNoId;
  std::optional<std::int64_t> recorded;  ///< modules in the trace; nothing where the program does not know
};
[[nodiscard]] TraceInvalidation read_invalidation(std::uint32_t rank, const instrumentation::Event& event);
/// The last one of a rank up to `at_ns`, of the micro-step that runs then or of the one before (the host is
/// ahead of the streams); nothing where these have none.
[[nodiscard]] std::optional<TraceInvalidation> invalidation_before(const store::Store& store,
                                                                   std::uint32_t rank, std::int64_t at_ns);

}  // namespace shardscope::analysis
