#include "instrumentation/frame_memory.h"

#include <utility>

namespace shardscope::instrumentation::wire {

FrameMemory& FrameMemory::instance() {
  static auto* memory = new FrameMemory;  // see the class comment
  return *memory;
}

std::uint8_t* FrameMemory::allocate(std::size_t bytes) {
  if (!is_block(bytes)) return new std::uint8_t[bytes];
  {
    const std::lock_guard lock(mutex_);
    if (!blocks_.empty()) {
      std::uint8_t* const memory = blocks_.back().release();
      blocks_.pop_back();
      return memory;
    }
  }
  return new std::uint8_t[kBlockBytes];
}

void FrameMemory::deallocate(std::uint8_t* memory, std::size_t bytes) noexcept {
  std::unique_ptr<std::uint8_t[]> owned(memory);
  if (!is_block(bytes)) return;
  const std::lock_guard lock(mutex_);
  if (blocks_.capacity() < kKept) {
    try {
      blocks_.reserve(kKept);
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  if (blocks_.size() < kKept) blocks_.push_back(std::move(owned));
}

std::size_t FrameMemory::kept() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

}  // namespace shardscope::instrumentation::wire
