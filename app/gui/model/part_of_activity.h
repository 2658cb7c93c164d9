// The time partition of a part of what was read of a rank, so that a range that cuts a step needs no second
// reading.
#pragma once

#include <cstdint>

#include "app/analysis/rank_activity.h"

namespace shardscope::gui {

/// Of the part in [begin, end). A rank that did not compute in this part, but in the rest of `whole`, was
/// idle or communicated: its time is known.
[[nodiscard]] analysis::TimePartition part_of(const analysis::RankActivity& whole, std::int64_t begin_ns,
                                              std::int64_t end_ns);

}  // namespace shardscope::gui
