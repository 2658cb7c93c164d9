// What became of a prefetch (docs/zero.md C5, C8; metrics.md 2.5): was the parameter available
// when it was needed, for how long before, or how long did compute wait.
#pragma once

#include <cstdint>

namespace shardscope::plan {

enum class PrefetchOutcome : std::uint8_t {
  early,         ///< it lay unused for longer than its gather took: it could have come later at no cost
  just_in_time,  ///< there when it was needed, not long before
  late,          ///< needed before it was there
  mistargeted,   ///< released unused because its trace was invalidated
  unused,        ///< released without a use
};

/// Times of one gather, all of one clock.
struct PrefetchTimes {
  std::int64_t gather_begin_ns = 0;
  std::int64_t gather_end_ns = 0;
  std::int64_t needed_ns = 0;   ///< the compute stream came to where it waits for the gather
  std::int64_t resumed_ns = 0;  ///< and went on
};

struct PrefetchVerdict {
  PrefetchOutcome outcome{};
  std::int64_t slack_ns = 0;   ///< from the gather's end to its need; late: minus what was waited
  std::int64_t gather_ns = 0;  ///< how long the gather took
};

/// Verdict on a prefetch that a module came to use.
[[nodiscard]] PrefetchVerdict judge_prefetch(const PrefetchTimes& times) noexcept;
/// Outcome of a prefetch that is freed without a use; `trace_invalidated`: together with its trace.
[[nodiscard]] constexpr PrefetchOutcome outcome_of_unused(bool trace_invalidated) noexcept {
  return trace_invalidated ? PrefetchOutcome::mistargeted : PrefetchOutcome::unused;
}
/// "early", "just in time", ...; "unknown" outside the enum.
[[nodiscard]] const char* to_string(PrefetchOutcome outcome) noexcept;

}  // namespace shardscope::plan
