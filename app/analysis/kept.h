// The steps that a recording with limits (--max-age, --max-size) has at full detail: docs/recording.md, "What
// was not kept".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Steps first to last, both included.
struct StepRange {
  std::uint32_t first = 0, last = 0;
};

struct Kept {
  std::vector<StepRange> steps;  ///< completed steps without deleted events; events may have been dropped
  std::uint32_t whole_steps = 0, all_steps = 0;   ///< number of these steps, and of all completed steps
  std::uint64_t events = 0, not_kept_events = 0;  ///< events in the recording; deleted events
  std::int64_t from_ns = 0;                       ///< no event newer than this was deleted; in run time
  std::vector<store::Moment> moments;             ///< in run time
};

/// nullopt if no event was deleted.
[[nodiscard]] std::optional<Kept> kept_of(const store::Store& store);
/// Whether no event of any rank in [begin, end] was deleted by the limits of the recording.
[[nodiscard]] bool is_kept(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns);

/// Intervals in which events of any rank were deleted by these limits, merged for repeated lookups.
[[nodiscard]] IntervalSet not_kept(const store::Store& store);
/// The same, and the intervals that Store::bound() evicted.
[[nodiscard]] IntervalSet not_here(const store::Store& store);
/// Whether the set overlaps [begin, end].
[[nodiscard]] bool meets(const IntervalSet& set, std::int64_t begin_ns, std::int64_t end_ns);

/// "full detail of steps 912 to 1010 (99 of 1010 steps), of everything from 61.0 s on; of the others ...".
[[nodiscard]] std::string text_of(const Kept& kept);
/// "slow_step at 12.3 s (step 99): step 99 took 3 s".
[[nodiscard]] std::string text_of(const store::Moment& moment);
/// null if no event was deleted.
[[nodiscard]] nlohmann::json kept_json(const std::optional<Kept>& kept);

}  // namespace shardscope::analysis
