// The owned gradients where they lie: what the norm and the optimizer read.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace shardscope::optim {

/// Of grad_accum_dtype (engine/gradients.h), averaged and scaled, laid out as plan::Ownership says: elements
/// [0, device_elems) of the owned range in device memory, the rest in host memory. A part without elements
/// has no data.
struct GradientParts {
  kernels::ConstPtr device;
  std::int64_t device_elems = 0;
  kernels::ConstPtr host;
  std::int64_t host_elems = 0;
};

}  // namespace shardscope::optim
