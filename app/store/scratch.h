// A buffer for one call at a time, reused by the next.
#pragma once

#include <cstddef>
#include <memory>

namespace shardscope::store {

/// Not initialized: bytes are written before they are read.
class Scratch {
 public:
  std::byte* room(std::size_t bytes) {
    if (bytes > size_) {
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return data_.get();
  }
  /// Frees a larger buffer: the memory of a large chunk is not kept for small ones.
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
