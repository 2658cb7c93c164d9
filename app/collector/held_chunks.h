// Chunks that wait to be recorded. A live view wants a rank's events twenty times a second, a recording wants
// them by the block: a small chunk in it is compressed, written, read back, joined with others and compressed
// again. Nothing is safe before the next commit anyway, so until then small chunks of a rank are held and
// joined here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "app/store/chunk.h"

namespace shardscope::collector {

class HeldChunks {
 public:
  /// Of all ranks together, 5 MiB: with more than that to hold there is no time to hold it.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 17;
  /// A rank's events are held for no longer, up to the next record_due(). Shorter than the time in which most
  /// ranks fill a block, it would cut blocks into pieces.
  static constexpr std::int64_t kLongest_ns = 500'000'000;

  /// `encoded`: the chunk's encode(), or empty where that is still to be done.
  using Record = std::function<void(const store::Chunk& chunk, std::span<const std::byte> encoded)>;
  explicit HeldChunks(Record record) : record_(std::move(record)) {}

  /// The next chunk of its rank: records it, and what is held before it, or takes its events out and holds
  /// them. What is recorded of a rank is in order. `encoded` == chunk.encode().
  void add(store::Chunk& chunk, std::vector<std::byte> encoded, std::int64_t now_ns);
  void record_due(std::int64_t now_ns);  ///< what has been held for kLongest_ns; before a commit
  void record_all();
  [[nodiscard]] std::size_t events() const noexcept { return events_; }  ///< held, of all ranks

 private:
  struct Held {
    std::vector<store::Chunk> chunks;
    std::vector<std::byte> encoded;  ///< of the first, while there is no other
    std::size_t events = 0;
    std::int64_t since_ns = 0;
  };
  void record(Held& held);

  Record record_;
  std::map<std::uint32_t, Held> ranks_;
  std::size_t events_ = 0;
};

}  // namespace shardscope::collector
