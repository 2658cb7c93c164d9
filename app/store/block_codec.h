// Encodes blocks and their pages; see block.h and docs/recording.md.
#pragma once

#include <cstddef>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// The page of the closed block that `state` holds.
[[nodiscard]] std::vector<std::byte> encode_page(const RankState& state);
/// The status of every parameter before that block.
[[nodiscard]] std::vector<std::byte> encode_statuses(const RankState& state);
/// Levels of detail as a recording stores them: few buckets, quantized shares.
[[nodiscard]] DensityPyramid coarse(const DensityPyramid& fine);

}  // namespace shardscope::store
