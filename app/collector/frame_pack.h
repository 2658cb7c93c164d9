// Packs messages of many ranks into one socket message: the collector above receives, decrypts and wakes up
// once for all of them. Each frame keeps its own encoding (instrumentation/wire.h) and is validated on its
// own; a pack adds only the frames' lengths. Pure.
//
// Format: four zero bytes and "ZSPK", then for each frame its length in bytes (64 bits, native byte order as
// everywhere in the protocol) and the frame, padded to a multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::collector {

class FramePack {
 public:
  /// Largest pack, unless one frame alone is longer. As large as a rank's largest batch, since a socket's
  /// queue is bounded by its number of messages.
  static constexpr std::size_t kBytes = std::size_t{128} << 10;

  [[nodiscard]] bool empty() const noexcept { return frames_ == 0; }
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept {
    return empty() || bytes_.size() + bytes + 16 <= kBytes;
  }
  void add(std::span<const std::uint8_t> frame);
  /// Returns the message to send, the pack or its only frame unpacked, and empties the pack.
  [[nodiscard]] std::vector<std::uint8_t> take();

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t frames_ = 0, last_bytes_ = 0;  ///< `last_bytes_`: of the last frame
};

/// Iterates over the frames of a received message, which may be a single unpacked one. It must outlive this.
class PackedFrames {
 public:
  explicit PackedFrames(std::span<const std::uint8_t> message) noexcept;
  /// The next frame; empty: there are no more.
  [[nodiscard]] std::span<const std::uint8_t> next() noexcept;
  /// True where a frame's length exceeds the rest of the pack, which is lost, or where the pack is empty or
  /// longer than FramePack::kBytes: then it yields no frame.
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }

 private:
  std::span<const std::uint8_t> rest_;
  bool packed_ = false, damaged_ = false;
};

}  // namespace shardscope::collector
