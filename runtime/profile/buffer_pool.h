// Buffers for records: a bounded number, taken by the driver's threads, filled, read by one thread and given
// back. Every call is short and may come from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace shardscope::profile {

class BufferPool {
 public:
  /// `most` buffers of `bytes` each at most; memory is taken when it is first needed.
  BufferPool(std::size_t bytes, std::size_t most) : bytes_(bytes), most_(most) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;  ///< of records
  };
  /// Zeroed, aligned to 8 bytes; null when all are in use, which is counted. `now_ns`: on any one clock.
  [[nodiscard]] std::uint8_t* take(std::int64_t now_ns) noexcept;
  /// One that take() gave, with records.
  void filled(std::uint8_t* data, std::size_t bytes) noexcept;
  /// What was filled since the last call, in that order. Each goes back with give().
  [[nodiscard]] std::vector<Filled> collect();
  /// Cleared whole: nothing says that the driver wrote no further than the records that it reports.
  void give(std::uint8_t* data) noexcept;

  /// When the longest held of the buffers taken after `since_ns` and not filled yet was taken; INT64_MAX:
  /// none.
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
