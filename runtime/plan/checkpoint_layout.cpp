#include "runtime/plan/checkpoint_layout.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardscope::plan {

std::vector<std::vector<SavedSlice>> checkpoint_layout(const Ownership& ownership, std::size_t params) {
  const std::uint32_t world = ownership.world();
  std::vector<std::vector<SavedSlice>> saved(world);
  for (std::size_t param = 0; param < params; ++param) {
    // Ranks with copies of the same elements have equal slices, so equal ranges are one range with several
    // owners.
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<OwnedSlice>> owners;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      for (OwnedSlice slice : ownership.slices(ParamId{static_cast<std::uint32_t>(param)}, rank)) {
        slice.rank = rank;
        if (slice.elems > 0) owners[{slice.param_offset, slice.elems}].push_back(slice);
      }
    }
    for (const auto& [range, slices] : owners) {
      const auto parts = static_cast<std::int64_t>(slices.size());
      for (std::int64_t part = 0; part < parts; ++part) {
        const OwnedSlice& slice = slices[static_cast<std::size_t>(part)];
        const std::int64_t begin = slice.elems * part / parts;
        const std::int64_t end = slice.elems * (part + 1) / parts;
        if (end == begin) continue;
        saved[slice.rank].push_back(
            {slice.param, slice.param_offset + begin, slice.owned_offset + begin, end - begin});
      }
    }
  }
  for (std::vector<SavedSlice>& slices : saved) {
    std::stable_partition(slices.begin(), slices.end(),
                          [&](const SavedSlice& slice) { return !ownership.frozen_at(slice.owned_offset); });
  }
  return saved;
}

}  // namespace shardscope::plan
