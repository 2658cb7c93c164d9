// Whether a forward is for training or for evaluation.
#pragma once

#include <cstdint>

namespace shardscope::plan {

/// PyTorch's model.train() and model.eval(). A forward in evaluation has no backward.
enum class ModelMode : std::uint8_t { training, evaluation };

}  // namespace shardscope::plan
