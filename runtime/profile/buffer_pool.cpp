#include "runtime/profile/buffer_pool.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace shardscope::profile {

BufferPool::Buffer* BufferPool::find(const std::uint8_t* data) noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [data](const Buffer& one) {
    return reinterpret_cast<const std::uint8_t*>(one.data.get()) == data;
  });
  return found == all_.end() ? nullptr : &*found;
}

std::uint8_t* BufferPool::take(std::int64_t now_ns) noexcept {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* data = free_.back();
    free_.pop_back();
    if (Buffer* buffer = find(data)) buffer->taken_ns = now_ns;
    return data;
  }
  if (all_.size() < most_) {
    try {
      // Reserves space in every list, so that filled() and give() never allocate.
      all_.reserve(all_.size() + 1);
      free_.reserve(all_.size() + 1);
      filled_.reserve(all_.size() + 1);
      all_.push_back({std::make_unique<std::uint64_t[]>((bytes_ + 7) / 8), now_ns});
      return reinterpret_cast<std::uint8_t*>(all_.back().data.get());
    } catch (const std::bad_alloc&) {
    }
  }
  ++refused_;
  return nullptr;
}

void BufferPool::filled(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  filled_.push_back({data, bytes});
  if (Buffer* buffer = find(data)) buffer->taken_ns = kNotHeld;
}

std::int64_t BufferPool::held_since(std::int64_t since_ns) const noexcept {
  const std::lock_guard lock(mutex_);
  std::int64_t first = kNotHeld;
  for (const Buffer& buffer : all_) {
    if (buffer.taken_ns > since_ns) first = std::min(first, buffer.taken_ns);
  }
  return first;
}

std::vector<BufferPool::Filled> BufferPool::collect() {
  std::vector<Filled> out;
  const std::lock_guard lock(mutex_);
  out.assign(filled_.begin(), filled_.end());
  filled_.clear();
  return out;
}

void BufferPool::give(std::uint8_t* data) noexcept {
  std::memset(data, 0, bytes_);
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
