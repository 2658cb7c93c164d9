// Each rank's own time over stretches of steps, computed from a digest: for recordings that keep every event
// and have no table of own times.
#pragma once

#include <vector>

#include "app/analysis/digest.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Rows as a recording with limits has them, by rank and step. Steps whose partition is not known are left
/// out. Empty unless the digest has all steps of a run of kLeastHours or more whose ranks have all ended:
/// drifts are about hours, and of a running run the figures would be computed again each second.
[[nodiscard]] std::vector<store::OwnTimeRow> own_times_of(const store::Store& store, const Digest& digest);
inline constexpr double kLeastHours = 0.25;

}  // namespace shardscope::analysis
