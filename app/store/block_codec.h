// Blocks and their pages as bytes; see block.h and docs/recording.md.
#pragma once

#include <cstddef>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// The page of the stretch that `state` holds, which has been closed.
[[nodiscard]] std::vector<std::byte> encode_page(const RankState& state);
/// The status of every parameter before that stretch.
[[nodiscard]] std::vector<std::byte> encode_statuses(const RankState& state);
/// Levels of detail as they come back from a recording: few buckets, shares in steps.
[[nodiscard]] DensityPyramid coarse(const DensityPyramid& fine);

}  // namespace shardscope::store
