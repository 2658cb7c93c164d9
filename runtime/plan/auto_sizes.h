// Model dimensions that the "auto" sizes of a configuration are computed from.
#pragma once

#include <cstdint>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

/// Width of the first embedding at or below `node` in pre-order; 0 if there is none.
[[nodiscard]] std::int64_t embedding_width(const NodeSpec& node);

}  // namespace shardscope::plan
