// Messages of many ranks as one of the socket: a node's collector packs what waits of its ranks, and the one
// above receives, decrypts and wakes up once for all of it. Each keeps its own encoding
// (instrumentation/wire.h) and is checked on its own; a pack adds nothing but where each begins. Pure.
//
// Four zero bytes and "ZSPK", then for each frame its length in bytes (64 bits, of this machine's order as
// all of the wire) and the frame, up to the next multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::collector {

class FramePack {
 public:
  /// Of a pack, unless one frame alone is longer: as much as a rank's largest batch, since what a socket
  /// holds is bounded by the number of its messages.
  static constexpr std::size_t kBytes = std::size_t{128} << 10;

  [[nodiscard]] bool empty() const noexcept { return frames_ == 0; }
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept {
    return empty() || bytes_.size() + bytes + 16 <= kBytes;
  }
  void add(std::span<const std::uint8_t> frame);
  /// What is to be sent: the pack, or the only frame as it is. The pack is empty then.
  [[nodiscard]] std::vector<std::uint8_t> take();

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t frames_ = 0, last_bytes_ = 0;  ///< the latter: of the last frame
};

/// The frames of what has arrived, which may be one that is not packed. `message` must outlive it.
class PackedFrames {
 public:
  explicit PackedFrames(std::span<const std::uint8_t> message) noexcept;
  /// Empty: there are no more.
  [[nodiscard]] std::span<const std::uint8_t> next() noexcept;
  /// A length in the pack reaches beyond its end: the rest is lost. Or the pack is longer than FramePack
  /// makes any, and none of it is given.
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }

 private:
  std::span<const std::uint8_t> rest_;
  bool packed_ = false, damaged_ = false;
};

}  // namespace shardscope::collector
