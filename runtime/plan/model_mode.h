// What a forward is for: to be gone back through, or to be measured.
#pragma once

#include <cstdint>

namespace shardscope::plan {

/// PyTorch's model.train() and model.eval(). A forward in evaluation has no backward.
enum class ModelMode : std::uint8_t { training, evaluation };

}  // namespace shardscope::plan
