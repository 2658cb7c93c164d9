// The global gradient norm: squares summed in double on the device, then over ranks on the host. The host
// waits for it once per step; other values that it needs (losses) are copied with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/ops.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/optim/gradient_parts.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

class GradientNorm {
 public:
  explicit GradientNorm(device::Device& device);

  struct Local {
    double sum_of_squares = 0;
    bool finite = true;
  };
  /// Queues the sums: over the part in device memory on the compute stream, over the part in host memory on
  /// the worker stream, after the work queued on the compute stream.
  void queue(const GradientParts& gradient);
  /// Waits for them (and so for everything queued on the compute stream before).
  [[nodiscard]] Local read();
  /// Counts the non-finite elements in [range) of `gradient`. Waits; call only between read() and the next
  /// queue(), if read() found some. Allocates nothing.
  [[nodiscard]] kernels::NotFiniteCount count_not_finite(const GradientParts& gradient, plan::Range range);

 private:
  struct Result {
    double sum = 0;
    std::uint32_t bad = 0;
  };
  device::Device& device_;
  device::Buffer result_;  ///< one Result, device
  device::Buffer copy_;    ///< one Result, pinned
  Result host_part_;       ///< written by the worker
  std::unique_ptr<device::Event> begin_, copied_, summed_;
};

/// Effect of a norm on the update (docs/zero.md S19): gradients are multiplied by `factor`, which undoes
/// `scale` and clips to `clip` (0: no clipping); `clip_factor` is the clipping's part of it. `norm` is that
/// of the unscaled gradients.
struct Clipping {
  double norm = 0;
  double factor = 1;
  double clip_factor = 1;
};
[[nodiscard]] Clipping clip(double sum_of_squares, double scale, double clip) noexcept;

}  // namespace shardscope::optim
