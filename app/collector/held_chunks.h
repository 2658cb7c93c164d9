// Joins small chunks before they are recorded. A live view needs a rank's events twenty times a second, but a
// small chunk in a recording is compressed, written, read back, joined with others and compressed again.
// Nothing is durable before the next commit anyway, so until then small chunks of a rank are held and joined
// here.
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
  /// Bound on held events of all ranks together (5 MiB): beyond it they are recorded at once.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 17;
  /// Longest time for which a rank's events are held, checked by record_due(). If it were shorter than the
  /// time in which most ranks fill a block, blocks would be cut into pieces.
  static constexpr std::int64_t kLongest_ns = 500'000'000;

  /// `encoded`: the result of chunk.encode(), or empty where it was not encoded yet.
  using Record = std::function<void(const store::Chunk& chunk, std::span<const std::byte> encoded)>;
  explicit HeldChunks(Record record) : record_(std::move(record)) {}

  /// Adds the next chunk of its rank: records it after the rank's held chunks, or moves its events out and
  /// holds them. Chunks of a rank are recorded in order. `encoded` == chunk.encode().
  void add(store::Chunk& chunk, std::vector<std::byte> encoded, std::int64_t now_ns);
  void record_due(std::int64_t now_ns);  ///< records chunks held for kLongest_ns; call before a commit
  void record_all();
  [[nodiscard]] std::size_t events() const noexcept { return events_; }  ///< held, of all ranks

 private:
  struct Held {
    std::vector<store::Chunk> chunks;
    std::vector<std::byte> encoded;  ///< the first chunk's, while it is the only one
    std::size_t events = 0;
    std::int64_t since_ns = 0;
  };
  void record(Held& held);

  Record record_;
  std::map<std::uint32_t, Held> ranks_;
  std::size_t events_ = 0;
};

}  // namespace shardscope::collector
