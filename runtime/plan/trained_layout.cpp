#include "runtime/plan/trained_layout.h"

namespace shardscope::plan {

FlatLayout trained_layout(const LayoutParams& params, std::uint32_t world, const ZeroConfig& zero) {
  std::vector<std::int64_t> elems;
  std::vector<std::uint32_t> groups;
  for (std::size_t i = 0; i < params.elems.size(); ++i) {
    if (i < params.trainable.size() && !params.trainable[i]) continue;
    elems.push_back(params.elems[i]);
    if (!params.groups.empty()) groups.push_back(params.groups[i]);
  }
  constexpr GradientOrder kOrder = GradientOrder::parameter_order;
  return uses_legacy_layout(zero)
             ? make_legacy_layout(elems, world, zero.max_elements_per_comm, kOrder, groups)
             : make_flat_layout(elems, world, kOrder, groups);
}

}  // namespace shardscope::plan
