// Which modules recompute their activations when the configuration asks for it by block.
#pragma once

#include <cstddef>

#include "runtime/plan/model_spec.h"

namespace shardscope::plan {

/// Marks every block for recomputation: each module directly below a list (the transformer's `h`). Returns
/// the number of blocks marked, 0 if the model has no list.
std::size_t checkpoint_blocks(ModelSpec& spec);

}  // namespace shardscope::plan
