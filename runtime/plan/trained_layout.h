// The flat layout of a model's trained parameters, from sizes alone: for estimates and figures, which need
// its sizes and not its order. The engine's layout is in ownership.h.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/partition.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Sizes by ParamId in elements, including frozen parameters.
struct LayoutParams {
  const std::vector<std::int64_t>& elems;
  const std::vector<bool>& trainable;        ///< shorter or empty: the remaining ones are trained
  const std::vector<std::uint32_t>& groups;  ///< parameter groups; empty: one
};

/// Layout of stages 0 to 2, for `world` ranks that share the states (stage 0: 1), in parameter order. Throws
/// std::invalid_argument as make_legacy_layout() does.
[[nodiscard]] FlatLayout trained_layout(const LayoutParams& params, std::uint32_t world,
                                        const ZeroConfig& zero);

}  // namespace shardscope::plan
