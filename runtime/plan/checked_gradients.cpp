#include "runtime/plan/checked_gradients.h"

namespace shardscope::plan {

std::vector<CheckedGradient> checked_gradients(const Ownership& ownership, std::uint32_t rank, Range checked,
                                               const std::vector<ParamId>& backward) {
  std::vector<CheckedGradient> found;
  for (std::uint32_t position = 0; position < backward.size(); ++position) {
    for (const OwnedSlice& slice : ownership.slices(backward[position], rank)) {
      const Range owned = intersect({slice.owned_offset, slice.owned_offset + slice.elems}, checked);
      if (owned.size() > 0) found.push_back({slice.param, position, owned});
    }
  }
  return found;
}

void NotFiniteGradients::add(const CheckedGradient& gradient, std::int64_t infinite, std::int64_t nan) {
  if (infinite + nan == 0) return;
  if (!first_) first_ = First{gradient.param, gradient.position, 0, 0};
  if (first_->param == gradient.param) {
    first_->infinite += infinite;
    first_->nan += nan;
  } else if (last_ != gradient.param) {
    ++other_params_;
  }
  last_ = gradient.param;
}

}  // namespace shardscope::plan
