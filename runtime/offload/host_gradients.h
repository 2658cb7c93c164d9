// Owned gradients in host memory (docs/zero.md S21): a reduced piece leaves the device on the copy stream
// while backward goes on, and later micro-steps are added there by the worker stream. Sums are kept in
// grad_accum_dtype, rounded after every micro-step as on the device, so that offloading changes no bit.
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
  /// Holds the elements `range` of the owned range as `type`, zero at first, in `pool` (host or pinned).
  /// `events` outlives this.
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
    kernels::Write write = kernels::Write::set;  ///< add: to what earlier micro-steps left here
  };
  /// Queues taking pieces after what is queued on the reduce stream. Buffers that must live until it is done
  /// are added to `held`; like the pieces they may be freed once the returned stream has come here.
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
