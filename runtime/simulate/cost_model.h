// Durations on the simulated hardware. Pure: hardware and work in, nanoseconds out.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"
#include "kernels/cost.h"
#include "runtime/simulate/hardware.h"

namespace shardscope::simulate {

/// The properties of a collective's ranks that its duration depends on.
struct GroupShape {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;  ///< on which the ranks are, evenly distributed
};

/// Upper bound of a single duration, to which longer ones are clamped. The playback rejects it, so that no
/// sum of times exceeds 64 bits.
constexpr std::int64_t kLongestWorkNs = 24LL * 3600 * 1'000'000'000;
/// Rounded, at most kLongestWorkNs.
[[nodiscard]] std::int64_t whole_ns(double ns) noexcept;

class CostModel {
 public:
  explicit CostModel(Hardware hardware) : hardware_(std::move(hardware)) {}

  [[nodiscard]] const Hardware& hardware() const noexcept { return hardware_; }

  /// A kernel on the device: kernel_us + max(flops / (peak * efficiency of matrix products or of attention),
  /// bytes / (bandwidth * efficiency)). That of a product is
  /// matrix_efficiency * depth / (depth + matrix_half_depth) * min(1, pieces / processors), in pieces of
  /// 128 x 128 results and 1,024 of depth.
  [[nodiscard]] std::int64_t kernel_ns(const kernels::Work& work) const noexcept;
  /// The CPU's work on host memory: bytes / host memory bandwidth.
  [[nodiscard]] std::int64_t host_work_ns(const kernels::Work& work) const noexcept;
  /// A copy inside device memory: counts reading and writing.
  [[nodiscard]] std::int64_t device_copy_ns(std::size_t bytes) const noexcept;
  /// A copy between the device and the host.
  [[nodiscard]] std::int64_t host_copy_ns(std::size_t bytes) const noexcept;
  /// A transfer between host memory and the rank's part of its node's disks.
  [[nodiscard]] std::int64_t nvme_ns(const kernels::Work& work) const noexcept;
  [[nodiscard]] std::int64_t launch_ns() const noexcept;

  /// The part of a collective that does not depend on its bytes: latency * ceil(log2(ranks)) + the steps of a
  /// ring. NCCL gathers and scatters in rings, whose steps grow with the ranks; all-reduces have twice as
  /// many.
  [[nodiscard]] std::int64_t collective_latency_ns(instrumentation::CollectiveOp op,
                                                   const GroupShape& group) const noexcept;
  /// The transfer, on unshared links: bytes * bus_factor / bandwidth. Among nodes the bandwidth is the
  /// smaller of `inside` and the share of the node's links for the group's ranks on a node; 0 for a single
  /// rank. `bytes`: metrics.md 2.3, S.
  [[nodiscard]] std::int64_t collective_moving_ns(instrumentation::CollectiveOp op, std::int64_t bytes,
                                                  const GroupShape& group) const noexcept;
  /// Exchange of small values between hosts: latency only.
  [[nodiscard]] std::int64_t host_exchange_ns(const GroupShape& group) const noexcept;

 private:
  [[nodiscard]] double matrix_efficiency(const kernels::ProductShape& product) const noexcept;
  [[nodiscard]] double latency_ns(const GroupShape& group) const noexcept;
  Hardware hardware_;
};

}  // namespace shardscope::simulate
