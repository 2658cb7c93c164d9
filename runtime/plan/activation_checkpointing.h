// Which modules recompute their activations when the configuration asks for it by block.
#pragma once

#include <cstddef>

#include "runtime/plan/model_spec.h"

namespace shardscope::plan {

/// Marks every block: each module directly below a list (the transformer's `h`), as is usual. Returns how
/// many were marked; 0: the model has no list.
std::size_t checkpoint_blocks(ModelSpec& spec);

}  // namespace shardscope::plan
