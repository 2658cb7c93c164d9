// AdamW over one rank's owned range: fp32 master weights (for 16-bit storage; in fp32 the parameter itself
// is the master), momentum and variance, each one buffer. Element-wise, so it does not matter where a
// shard begins: stages agree bitwise.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "runtime/device/device.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

class OptimizerState {
 public:
  /// `params`: the owned range in storage type, `elems` long; outlives this. Buffers come from the device
  /// pool and are zero; the compute stream owns them.
  OptimizerState(device::Device& device, kernels::Ptr params, std::int64_t elems);

  /// fp32[elems]: what is updated, saved and loaded.
  [[nodiscard]] float* master() const noexcept;
  [[nodiscard]] float* momentum() const noexcept { return static_cast<float*>(momentum_.data()); }
  [[nodiscard]] float* variance() const noexcept { return static_cast<float*>(variance_.data()); }
  [[nodiscard]] std::int64_t elems() const noexcept { return elems_; }
  [[nodiscard]] bool has_master_copy() const noexcept { return static_cast<bool>(master_); }

  /// Queues one update of `range` on the compute stream. `gradient` is that of the whole owned range.
  void step(plan::Range range, kernels::ConstPtr gradient, const kernels::AdamW& settings);
  /// Queues rounding the master weights to storage type (after loading); nothing to do in fp32.
  void round_params();

 private:
  device::Device& device_;
  kernels::Ptr params_;
  std::int64_t elems_;
  device::Buffer master_, momentum_, variance_;
};

}  // namespace shardscope::optim
