// Which elements each rank writes into a checkpoint: its owned range, or an equal part of it where several
// ranks own the same elements (stage 0, MiCS). Every element is written once, and all ranks write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/ownership.h"

namespace shardscope::plan {

/// A piece of one parameter in one rank's file of a checkpoint.
struct SavedSlice {
  ParamId param{};
  std::int64_t param_offset = 0;  ///< first element within the parameter
  std::int64_t owned_offset = 0;  ///< first element within the rank's owned range
  std::int64_t elems = 0;         ///< above 0; never padding
};

/// Slices by rank, each rank's in parameter order, frozen parameters last. Every element of the `params`
/// parameters is in exactly one slice.
[[nodiscard]] std::vector<std::vector<SavedSlice>> checkpoint_layout(const Ownership& ownership,
                                                                     std::size_t params);

}  // namespace shardscope::plan
