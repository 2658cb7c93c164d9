// Private to the wire code: memory of the frames that hold batches. A rank encodes one frame after another
// and ZeroMQ's thread frees them; without a pool, memory of this size would be mapped and unmapped each time,
// and the page faults and unmapping would be a third of the cost of publishing. A few blocks are kept for
// reuse.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace shardscope::instrumentation::wire {

/// Thread-safe. Never destroyed: frames may be freed until the process exits.
class FrameMemory final : public flatbuffers::Allocator {
 public:
  static constexpr std::size_t kBlockBytes = 168U << 10;  ///< fits a frame of RankLink's largest batch
  static constexpr std::size_t kLeastBytes = 16U << 10;   ///< smaller frames are allocated with malloc
  static constexpr std::size_t kKept = 8;                 ///< blocks

  static FrameMemory& instance();
  /// Throws std::bad_alloc.
  std::uint8_t* allocate(std::size_t bytes) override;
  void deallocate(std::uint8_t* memory, std::size_t bytes) noexcept override;
  [[nodiscard]] std::size_t kept() const;  ///< number of kept blocks

 private:
  static constexpr bool is_block(std::size_t bytes) noexcept {
    return bytes >= kLeastBytes && bytes <= kBlockBytes;
  }
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
};

}  // namespace shardscope::instrumentation::wire
