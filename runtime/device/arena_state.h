// The caching allocator behind Arena.
//
// [Note: segments and blocks]
// Memory comes from the backend in segments, each owned by one stream. A segment is divided into blocks that
// are contiguous; a freed block is merged with its free neighbours at once, and an allocation takes the
// smallest sufficient free block (lowest address among equals, which keeps the high end of a segment whole)
// and splits off the remainder. Small requests have their own segments, so that a long-lived norm or scale
// never pins the middle of a segment with large gathers. Because buffers of one stream are allocated and
// freed in host order, this alone keeps the pool a few per cent above the memory in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/device/device.h"

namespace shardscope::device {

struct Arena::State {
  static constexpr std::size_t kSmallRequest = std::size_t{1} << 20;
  static constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
  static constexpr std::size_t kLargeRequest = std::size_t{10} << 20;
  static constexpr std::size_t kLargeSegment = std::size_t{20} << 20;
  static constexpr std::size_t kLargeRounding = std::size_t{2} << 20;
  static constexpr std::size_t kPage = 4096;

  struct Pool;
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Block* before = nullptr;  ///< neighbours in the same segment
    Block* after = nullptr;
    Pool* pool = nullptr;
    bool free = true;
  };
  struct BySizeThenAddress {
    bool operator()(const Block* a, const Block* b) const noexcept {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };
  /// Free blocks of one stream and one size range.
  struct Pool {
    Stream* stream = nullptr;
    bool small = false;
    std::set<Block*, BySizeThenAddress> free_blocks;
  };

  explicit State(instrumentation::MemoryPool which) : pool(which) {}

  [[nodiscard]] static std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
    return (bytes + unit - 1) / unit * unit;
  }
  [[nodiscard]] Pool& pool_for(std::size_t bytes, Stream& stream);
  /// A free block of at least `bytes`, removed from its pool and split to size; null if none.
  [[nodiscard]] Block* take(Pool& from, std::size_t bytes);
  void add_segment(Pool& to, void* data, std::size_t bytes);
  void give_back(Block* block);
  void account(instrumentation::EventKind kind, std::size_t bytes, MemoryTag tag) noexcept;
  /// `used_then`: bytes in use afterwards.
  void emit(instrumentation::EventKind kind, std::size_t bytes, MemoryTag tag,
            std::size_t used_then) const noexcept;

  instrumentation::MemoryPool pool;
  mutable std::mutex mutex;  ///< the host thread allocates; figures are read from other threads
  std::map<std::pair<Stream*, bool>, std::unique_ptr<Pool>> pools;
  std::unordered_map<Block*, std::unique_ptr<Block>> blocks;  ///< owns every block, live or free
  std::unordered_map<const void*, Block*> live;
  std::size_t limit = 0;
  std::size_t used = 0;
  std::size_t peak = 0;
  std::size_t reserved = 0;
  std::array<std::size_t, instrumentation::kMemoryCategoryCount> by_category{};
};

}  // namespace shardscope::device
