// Which steps a recording has at full detail, where its recorder was asked to keep a part (--max-age,
// --max-size): docs/recording.md, "What was not kept".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Steps by number, the last one included.
struct StepRange {
  std::uint32_t first = 0, last = 0;
};

struct Kept {
  std::vector<StepRange> steps;  ///< completed ones of which no event was deleted; some may have been dropped
  std::uint32_t whole_steps = 0, all_steps = 0;   ///< how many these are, and how many were completed
  std::uint64_t events = 0, not_kept_events = 0;  ///< here, and of the whole run not here
  std::int64_t from_ns = 0;            ///< of what is newer nothing was deleted; on the run's clock
  std::vector<store::Moment> moments;  ///< on the run's clock
};

/// Nothing where everything was kept.
[[nodiscard]] std::optional<Kept> kept_of(const store::Store& store);
/// Whether no event of any rank in [begin, end] was deleted by the limits of the recording.
[[nodiscard]] bool is_kept(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns);

/// Times of which events of any rank were deleted by these limits: joined, for looking up many.
[[nodiscard]] IntervalSet not_kept(const store::Store& store);
/// The same, and those that Store::bound() has evicted.
[[nodiscard]] IntervalSet not_here(const store::Store& store);
/// Whether anything of [begin, end] is in it.
[[nodiscard]] bool meets(const IntervalSet& set, std::int64_t begin_ns, std::int64_t end_ns);

/// "full detail of steps 912 to 1010 (99 of 1010 steps), of everything from 61.0 s on; of the others ...".
[[nodiscard]] std::string text_of(const Kept& kept);
/// "slow_step at 12.3 s (step 99): step 99 took 3 s".
[[nodiscard]] std::string text_of(const store::Moment& moment);
/// null where everything was kept.
[[nodiscard]] nlohmann::json kept_json(const std::optional<Kept>& kept);

}  // namespace shardscope::analysis
