// When each rank entered one collective: shows which rank the others waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct Arrival {
  std::uint32_t rank = 0;
  std::int64_t at_ns = 0;    ///< when the rank's stream reached the collective
  std::int64_t late_ns = 0;  ///< delay after the first rank
};

/// Arrival times of all recorded ranks, in order of rank, at the collective that span `one` on `lane` belongs
/// to. A collective has the same sequence number on all ranks, and none ends before all have entered: the
/// spans of the other ranks overlap this one.
[[nodiscard]] std::vector<Arrival> arrivals(const store::Store& store, store::LaneId lane,
                                            const store::Span& one);

/// The last rank to arrive, or null with fewer than two ranks.
[[nodiscard]] const Arrival* last_to_arrive(const std::vector<Arrival>& all);

}  // namespace shardscope::gui
