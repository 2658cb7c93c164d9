// The owned gradients in memory, as read by the norm and the optimizer.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace shardscope::optim {

/// In grad_accum_dtype (engine/gradients.h), averaged and scaled, laid out as in plan::Ownership: elements
/// [0, device_elems) of the owned range in device memory, the rest in host memory. A part without elements
/// has no data.
struct GradientParts {
  kernels::ConstPtr device;
  std::int64_t device_elems = 0;
  kernels::ConstPtr host;
  std::int64_t host_elems = 0;
};

}  // namespace shardscope::optim
