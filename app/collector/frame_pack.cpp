#include "app/collector/frame_pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace shardscope::collector {

namespace {
// No frame begins like this: the offset of a FlatBuffer's root is not 0.
constexpr std::array<std::uint8_t, 8> kMark = {0, 0, 0, 0, 'Z', 'S', 'P', 'K'};
constexpr std::size_t kLength = sizeof(std::uint64_t);

/// Padded size of a frame, so that each frame begins aligned for reading in place.
constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
}  // namespace

void FramePack::add(std::span<const std::uint8_t> frame) {
  if (empty()) bytes_.assign(kMark.begin(), kMark.end());
  const std::uint64_t length = last_bytes_ = frame.size();
  const std::size_t at = bytes_.size();
  bytes_.resize(at + kLength + padded(frame.size()));
  std::memcpy(bytes_.data() + at, &length, kLength);
  std::copy(frame.begin(), frame.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at + kLength));
  ++frames_;
}

std::vector<std::uint8_t> FramePack::take() {
  std::vector<std::uint8_t> out = std::exchange(bytes_, {});
  // A single frame is sent unpacked.
  if (std::exchange(frames_, 0) == 1) {
    constexpr std::size_t kBefore = kMark.size() + kLength;
    out.erase(out.begin(), out.begin() + kBefore);
    out.resize(last_bytes_);
  }
  return out;
}

PackedFrames::PackedFrames(std::span<const std::uint8_t> message) noexcept
    : rest_(message),
      packed_(message.size() >= kMark.size() && std::equal(kMark.begin(), kMark.end(), message.begin())) {
  if (!packed_) return;
  rest_ = rest_.subspan(kMark.size());
  // FramePack makes no empty pack, nor a longer one: its frames would evade the bounds on received messages.
  damaged_ = rest_.empty() || message.size() > FramePack::kBytes;
  if (damaged_) rest_ = {};
}

std::span<const std::uint8_t> PackedFrames::next() noexcept {
  if (rest_.empty()) return {};
  if (!packed_) return std::exchange(rest_, {});
  std::uint64_t length = 0;
  if (rest_.size() >= kLength) std::memcpy(&length, rest_.data(), kLength);
  // The rest may be shorter than a length field; `length` is 0 then. Frames before this one stay valid.
  if (length == 0 || length > rest_.size() - kLength) {
    damaged_ = true;
    rest_ = {};
    return {};
  }
  const std::span<const std::uint8_t> frame = rest_.subspan(kLength, length);
  rest_ = rest_.subspan(std::min(rest_.size(), kLength + padded(length)));
  return frame;
}

}  // namespace shardscope::collector
