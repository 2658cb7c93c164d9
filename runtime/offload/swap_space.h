// A rank's swap file on a local disk for offloaded model states: an unnamed file under nvme_path, which is
// deleted when the process ends, however that happens. Space is allocated on reservation, so a full disk is
// detected then and not in the middle of a step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/offload/io/io_port.h"
#include "runtime/offload/transfer.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::offload {

/// Rounds up to whole blocks of direct I/O.
[[nodiscard]] constexpr std::size_t io_round(std::size_t bytes) noexcept {
  constexpr auto kUnit = static_cast<std::size_t>(kIoAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// Host memory aligned for direct I/O.
class IoBuffer {
 public:
  IoBuffer() = default;
  IoBuffer(device::Arena& pool, std::size_t bytes, device::MemoryTag tag, device::Stream& stream);
  [[nodiscard]] std::byte* data() const noexcept;

 private:
  device::Buffer buffer_;
};

class SwapSpace {
 public:
  /// Opens a file under `folder`, directly (O_DIRECT) where the file system allows. Throws BackendError with
  /// path and cause when that fails. A device that only meters its work (Backend::cost) gets no file: ranges
  /// are reserved and transfers metered, but no data is moved.
  SwapSpace(device::Device& device, const std::string& folder, const plan::AioConfig& aio);
  ~SwapSpace();
  SwapSpace(const SwapSpace&) = delete;
  SwapSpace& operator=(const SwapSpace&) = delete;

  /// Reserves a range of the file, accounted in the pool nvme; position() returns its offset. Unwritten bytes
  /// read as zero. Throws BackendError if the disk is full.
  [[nodiscard]] device::Buffer reserve(std::size_t bytes, device::MemoryTag tag);
  [[nodiscard]] static std::int64_t position(const device::Buffer& place) noexcept;

  /// Queues a transfer on the device's nvme stream. Parts are whole io_round() blocks in IoBuffer memory.
  /// `buffers_in_use`: of the caller's pool, for the events.
  void queue(IoDirection direction, std::vector<IoPart> parts, TransferLabel label,
             std::int64_t buffers_in_use);

  /// "io_uring, direct, depth 8 x 1 MiB", or the fallback in use and its reason.
  [[nodiscard]] std::string describe() const;

 private:
  class FileArena;
  device::Device& device_;
  const plan::AioConfig aio_;
  const std::string folder_;
  int file_ = -1;  ///< -1: there is none
  bool direct_ = true;
  std::string why_threads_;
  std::unique_ptr<IoPort> port_;
  std::unique_ptr<FileArena> places_;
};

}  // namespace shardscope::offload
