#include "runtime/profile/buffer_pool.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace shardscope::profile {

std::uint8_t* BufferPool::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* data = free_.back();
    free_.pop_back();
    return data;
  }
  if (all_.size() < most_) {
    try {
      // Room in every list now, so that filled() and give() never allocate.
      all_.reserve(all_.size() + 1);
      free_.reserve(all_.size() + 1);
      filled_.reserve(all_.size() + 1);
      all_.push_back(std::make_unique<std::uint64_t[]>((bytes_ + 7) / 8));
      return reinterpret_cast<std::uint8_t*>(all_.back().get());
    } catch (const std::bad_alloc&) {
    }
  }
  ++refused_;
  return nullptr;
}

void BufferPool::filled(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  filled_.push_back({data, bytes});
}

std::vector<BufferPool::Filled> BufferPool::collect() {
  std::vector<Filled> out;
  const std::lock_guard lock(mutex_);
  out.assign(filled_.begin(), filled_.end());
  filled_.clear();
  return out;
}

void BufferPool::give(std::uint8_t* data, std::size_t bytes_used) noexcept {
  std::memset(data, 0, std::min(bytes_used, bytes_));
  const std::lock_guard lock(mutex_);
  free_.push_back(data);
}

std::size_t BufferPool::made() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

std::uint64_t BufferPool::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace shardscope::profile
