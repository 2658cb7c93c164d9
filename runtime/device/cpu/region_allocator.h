// Allocates pieces of one large, mostly unbacked reservation: lowest address first, neighbours merged when
// freed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace shardscope::device {

class RegionAllocator {
 public:
  explicit RegionAllocator(std::size_t bytes) {
    if (bytes != 0) free_.emplace(0, bytes);
  }
  /// Offset of `bytes` (a multiple of the page size), or nullopt if no gap is large enough.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t bytes) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      const std::size_t offset = it->first;
      const std::size_t left = it->second - bytes;
      free_.erase(it);
      if (left != 0) free_.emplace(offset + bytes, left);
      return offset;
    }
    return std::nullopt;
  }
  void give_back(std::size_t offset, std::size_t bytes) {
    auto [it, inserted] = free_.emplace(offset, bytes);
    if (const auto after = std::next(it); after != free_.end() && offset + bytes == after->first) {
      it->second += after->second;
      free_.erase(after);
    }
    if (it != free_.begin()) {
      const auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        free_.erase(it);
      }
    }
  }

 private:
  std::map<std::size_t, std::size_t> free_;  ///< offset -> bytes
};

}  // namespace shardscope::device
