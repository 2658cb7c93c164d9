// Outcome of a prefetch (docs/zero.md C5, C8; metrics.md 2.5): whether the parameter was available when it
// was needed, how long before, or how long compute waited for it.
#pragma once

#include <cstdint>

namespace shardscope::plan {

enum class PrefetchOutcome : std::uint8_t {
  early,         ///< available for longer than its gather took: a later gather would have cost nothing
  just_in_time,  ///< available when it was needed, not long before
  late,          ///< needed before it was available
  mistargeted,   ///< released unused because its trace was invalidated
  unused,        ///< released without a use
};

/// Timestamps of one gather, all from one clock.
struct PrefetchTimes {
  std::int64_t gather_begin_ns = 0;
  std::int64_t gather_end_ns = 0;
  std::int64_t needed_ns = 0;   ///< the compute stream began its wait for the gather
  std::int64_t resumed_ns = 0;  ///< and ended it
};

struct PrefetchVerdict {
  PrefetchOutcome outcome{};
  std::int64_t slack_ns = 0;   ///< from the gather's end to its need; late: minus the time waited
  std::int64_t gather_ns = 0;  ///< how long the gather took
};

/// Outcome of a prefetch that a module used.
[[nodiscard]] PrefetchVerdict judge_prefetch(const PrefetchTimes& times) noexcept;
/// Outcome of a prefetch that is freed without a use; `trace_invalidated`: together with its trace.
[[nodiscard]] constexpr PrefetchOutcome outcome_of_unused(bool trace_invalidated) noexcept {
  return trace_invalidated ? PrefetchOutcome::mistargeted : PrefetchOutcome::unused;
}
/// "early", "just in time", ...; "unknown" outside the enum.
[[nodiscard]] const char* to_string(PrefetchOutcome outcome) noexcept;

}  // namespace shardscope::plan
