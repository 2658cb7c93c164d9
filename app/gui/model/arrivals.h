// When each rank entered one collective, and so which rank the others waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct Arrival {
  std::uint32_t rank = 0;
  std::int64_t at_ns = 0;    ///< the rank's stream reached the collective
  std::int64_t late_ns = 0;  ///< after the first rank that came
};

/// Arrivals of every rank that the store knows of at the collective that `one` on `lane` is, by rank. A
/// collective has the same number on all ranks and none ends before all have entered, so the others' spans
/// meet this one in time.
[[nodiscard]] std::vector<Arrival> arrivals(const store::Store& store, store::LaneId lane,
                                            const store::Span& one);

/// The last to come, or null when there are not two ranks to compare.
[[nodiscard]] const Arrival* last_to_arrive(const std::vector<Arrival>& all);

}  // namespace shardscope::gui
