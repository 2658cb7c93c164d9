// The global gradient norm: squares summed in double on the device, then over ranks on the host. The only
// place in a step where the host waits for the device; whatever else it needs to know travels with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/types.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"

namespace shardscope::optim {

class GradientNorm {
 public:
  explicit GradientNorm(device::Device& device);

  struct Local {
    double sum_of_squares = 0;
    bool finite = true;
  };
  /// Queues the sum over `gradient` (`elems` long) on the compute stream.
  void queue(kernels::ConstPtr gradient, std::int64_t elems);
  /// Waits for it (and so for everything queued before it).
  [[nodiscard]] Local read();

 private:
  struct Result {
    double sum = 0;
    std::uint32_t bad = 0;
  };
  device::Device& device_;
  device::Buffer result_;  ///< device
  device::Buffer copy_;    ///< pinned
  std::unique_ptr<device::Event> copied_;
};

/// What a norm means for the update (zero-reference S19): gradients are multiplied by `factor`, which
/// undoes `scale` and clips to `clip` (0: no clipping). `norm` is that of the unscaled gradients.
struct Clipping {
  double norm = 0;
  double factor = 1;
};
[[nodiscard]] Clipping clip(double sum_of_squares, double scale, double clip) noexcept;

}  // namespace shardscope::optim
