// The label of a piece of a critical path: that of the span which covers it.
#pragma once

#include <string>

#include "app/analysis/critical_path.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// "h.3.mlp", "all-gather 12, for parameters of h.3", "NVMe read": of the shortest span on the piece's rank,
/// in a lane of its part, that covers at least half of it. Empty if there is none (idle or unrecorded time).
[[nodiscard]] std::string piece_label(const store::Store& store, const PathPiece& piece);

}  // namespace shardscope::analysis
