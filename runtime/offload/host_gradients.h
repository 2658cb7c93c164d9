// Owned gradients in host memory (docs/zero.md S21): a reduced piece is copied to the host on the copy stream
// during backward, and the worker stream adds later micro-steps there. Sums are kept in grad_accum_dtype,
// rounded after every micro-step as on the device, so that results are bitwise equal.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"
#include "runtime/execution/event_pool.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/partition.h"

namespace shardscope::offload {

class HostGradients {
 public:
  /// Stores the elements `range` of the owned range as `type`, initially zero, in `pool` (host or pinned).
  /// `events` must outlive this.
  HostGradients(device::Device& device, execution::EventPool& events, kernels::DType type, plan::Range range,
                device::Arena& pool);

  [[nodiscard]] bool holds(std::int64_t owned_offset) const noexcept { return owned_offset >= range_.begin; }
  /// The elements of `range`, for work on the worker stream.
  [[nodiscard]] kernels::ConstPtr data() const noexcept;

  /// A reduced piece in device memory; its type may differ from that of the sums.
  struct Piece {
    plan::ParamId param{};
    std::int64_t owned_offset = 0;
    kernels::ConstPtr from;
    std::int64_t elems = 0;
    kernels::Write write = kernels::Write::set;  ///< add: to the sum of earlier micro-steps
  };
  /// Queues the transfer of pieces after the work queued on the reduce stream. Buffers that must be kept
  /// until it has finished are added to `held`; like the pieces they may be freed once the returned stream
  /// has reached this point.
  [[nodiscard]] device::Stream& take(const std::vector<Piece>& pieces, std::vector<device::Buffer>& held);
  /// Queues zeros on the worker stream: no gradient in this accumulation window.
  void clear(std::int64_t owned_offset, std::int64_t elems);

 private:
  [[nodiscard]] kernels::Ptr at(std::int64_t owned_offset) const noexcept;
  [[nodiscard]] std::size_t bytes_of(std::int64_t elems) const noexcept;

  device::Device& device_;
  execution::EventPool& events_;
  device::Arena& pool_;
  const kernels::DType type_;
  const plan::Range range_;
  device::Buffer buffer_;  ///< [elements of range_] in type_, of the worker stream
};

}  // namespace shardscope::offload
