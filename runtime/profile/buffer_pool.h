// A bounded pool of record buffers: the driver's threads take and fill them, one thread reads and returns
// them. All calls are short and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace shardscope::profile {

class BufferPool {
 public:
  /// At most `most` buffers of `bytes` each, allocated when first needed.
  BufferPool(std::size_t bytes, std::size_t most) : bytes_(bytes), most_(most) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;  ///< of records
  };
  /// A zeroed buffer, aligned to 8 bytes; null if all are in use, which is counted. `now_ns`: always on the
  /// same clock.
  [[nodiscard]] std::uint8_t* take(std::int64_t now_ns) noexcept;
  /// Passes back a buffer of take() with `bytes` of records.
  void filled(std::uint8_t* data, std::size_t bytes) noexcept;
  /// Returns the buffers filled since the last call, in that order. Return each with give().
  [[nodiscard]] std::vector<Filled> collect();
  /// Returns a buffer to the pool. Clears all of it: the driver may have written beyond the records it
  /// reports.
  void give(std::uint8_t* data) noexcept;

  /// The time of the earliest take() after `since_ns` whose buffer is not filled yet; INT64_MAX: none.
  [[nodiscard]] std::int64_t held_since(std::int64_t since_ns) const noexcept;

  [[nodiscard]] std::size_t bytes_each() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t made() const;
  [[nodiscard]] std::uint64_t refused() const;  ///< calls of take() that got none

 private:
  const std::size_t bytes_, most_;
  mutable std::mutex mutex_;
  struct Buffer {
    std::unique_ptr<std::uint64_t[]> data;
    std::int64_t taken_ns = kNotHeld;
  };
  static constexpr std::int64_t kNotHeld = INT64_MAX;
  [[nodiscard]] Buffer* find(const std::uint8_t* data) noexcept;
  std::vector<Buffer> all_;
  std::vector<std::uint8_t*> free_;
  std::vector<Filled> filled_;
  std::uint64_t refused_ = 0;
};

}  // namespace shardscope::profile
