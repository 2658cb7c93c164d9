// How long things take on a machine that is not there. Pure: hardware and work in, nanoseconds out.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"
#include "kernels/cost.h"
#include "runtime/simulate/hardware.h"

namespace shardscope::simulate {

/// The ranks of a collective, as far as time depends on them.
struct GroupShape {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;  ///< that they are on, evenly
};

/// Longer than anything takes that a rank does in one piece: what rates or sizes make longer is this. The
/// playback refuses it, so that no sum of times is beyond 64 bits.
constexpr std::int64_t kLongestWorkNs = 24LL * 3600 * 1'000'000'000;
/// As long as kLongestWorkNs at most.
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
  /// A copy inside device memory, which is read and written.
  [[nodiscard]] std::int64_t device_copy_ns(std::size_t bytes) const noexcept;
  /// A copy between the device and the host.
  [[nodiscard]] std::int64_t host_copy_ns(std::size_t bytes) const noexcept;
  /// A transfer between host memory and the rank's part of its node's disks.
  [[nodiscard]] std::int64_t nvme_ns(const kernels::Work& work) const noexcept;
  [[nodiscard]] std::int64_t launch_ns() const noexcept;

  /// From the arrival of the last rank until anything moves: latency * ceil(log2(ranks)).
  [[nodiscard]] std::int64_t collective_latency_ns(const GroupShape& group) const noexcept;
  /// Then, where its links are its own: bytes * bus_factor / bandwidth. Among nodes the bandwidth is the
  /// smaller of `inside` and the part of the node's links that the group's ranks on a node have; alone, a
  /// rank waits for no other and nothing moves. `bytes`: metrics.md 2.3, S.
  [[nodiscard]] std::int64_t collective_moving_ns(instrumentation::CollectiveOp op, std::int64_t bytes,
                                                  const GroupShape& group) const noexcept;
  /// Small values that hosts exchange: latency only.
  [[nodiscard]] std::int64_t host_exchange_ns(const GroupShape& group) const noexcept;

 private:
  [[nodiscard]] double matrix_efficiency(const kernels::ProductShape& product) const noexcept;
  [[nodiscard]] double latency_ns(const GroupShape& group) const noexcept;
  Hardware hardware_;
};

}  // namespace shardscope::simulate
