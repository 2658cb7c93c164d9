// What a piece of a critical path is called: by the span that it lies in.
#pragma once

#include <string>

#include "app/analysis/critical_path.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// "h.3.mlp", "all-gather 12, for parameters of h.3", "NVMe read": the shortest span on the piece's rank, of
/// a lane that its part has, that covers at least half of it. Empty where none does (idle time, what is not
/// recorded).
[[nodiscard]] std::string piece_label(const store::Store& store, const PathPiece& piece);

}  // namespace shardscope::analysis
