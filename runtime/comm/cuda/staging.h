// Host memory for the staged collectives of a CUDA device: pinned, and readable by the peers of the node.
// Pageable memory would be wrong: the driver reads it when a copy is queued, not when the stream reaches it,
// so a copy after a wait for a host thread would read old data.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "runtime/device/cpu/region_allocator.h"
#include "runtime/device/device.h"

namespace shardscope::comm {

/// One for all communicators of a rank; must be destroyed before the device and the world. Called from the
/// rank's host thread.
class Staging {
 public:
  /// `region`: memory that the peers can read; null if no peer reads it in place (MPI).
  Staging(device::Device& there, device::SharedRegion* region);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// The device whose memory is communicated.
  [[nodiscard]] device::Device& there() noexcept { return there_; }
  /// The device's stream of a lane, and the host stream that performs its collectives. Throws BackendError
  /// for a lane without collectives.
  [[nodiscard]] device::Stream& stream_there(instrumentation::StreamId lane);
  [[nodiscard]] device::Stream& stream_here(instrumentation::StreamId lane);

  /// Buffer for one collective of the lane, aligned to 4096 bytes. The lane's next collective reuses it: its
  /// first copy is on the same device stream, after this collective's last. Grows if needed, after waiting
  /// for the lane.
  [[nodiscard]] std::byte* room(instrumentation::StreamId lane, std::size_t bytes);

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  void give_back(Block& block) noexcept;

  device::Device& there_;
  device::SharedRegion* const region_;
  std::optional<device::RegionAllocator> free_;  ///< of the region
  std::array<Block, instrumentation::kStreamCount> blocks_;
  const std::unique_ptr<device::Device> here_;  ///< its streams only
};

}  // namespace shardscope::comm
