// Memory for one call at a time, kept for the next.
#pragma once

#include <cstddef>
#include <memory>

namespace shardscope::store {

/// Bytes that are written before they are read, so never cleared.
class Scratch {
 public:
  std::byte* room(std::size_t bytes) {
    if (bytes > size_) {
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return data_.get();
  }
  /// What a large chunk needed is not kept for the small ones that follow.
  void keep_at_most(std::size_t bytes) {
    if (size_ <= bytes) return;
    data_.reset();
    size_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

}  // namespace shardscope::store
