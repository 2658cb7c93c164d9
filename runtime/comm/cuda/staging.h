// Host memory through which the collectives of a CUDA device go: the peers of the node can read it, and it is
// pinned. Pageable memory would not do: the driver reads it when a copy is queued, not when the stream gets
// there, so that a copy behind a wait for a host thread would take what lay there before.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "runtime/device/cpu/region_allocator.h"
#include "runtime/device/device.h"

namespace shardscope::comm {

/// One for all communicators of a rank; goes before the device and the world do. Called from the rank's host
/// thread.
class Staging {
 public:
  /// `region`: memory that the peers can read; null where no peer reads it in place (MPI).
  Staging(device::Device& there, device::SharedRegion* region);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// The device whose memory is communicated.
  [[nodiscard]] device::Device& there() noexcept { return there_; }
  /// The device's stream of a lane, and the host thread that does its collectives. Throws BackendError for a
  /// lane that has no collectives.
  [[nodiscard]] device::Stream& stream_there(instrumentation::StreamId lane);
  [[nodiscard]] device::Stream& stream_here(instrumentation::StreamId lane);

  /// Room for one collective of the lane, aligned to 4096 bytes. The same memory serves the lane's next one:
  /// its first user is a copy on the same stream of the device, behind this collective's last. Grows, waiting
  /// for the lane, when more is needed than ever before.
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
