#include "kernels/cpu/workspace.h"

#include <array>
#include <atomic>
#include <new>

#include "kernels/ops.h"

namespace shardscope::kernels {
namespace cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

// Bytes held by all threads, for cpu_workspace_bytes(). Only a counter: no other data depends on it, so
// relaxed order suffices. Inside a function, so that it exists before the first block of any thread.
std::atomic<std::size_t>& held() noexcept {
  static std::atomic<std::size_t> bytes{0};
  return bytes;
}

// One slot of one thread. It only grows; a larger request frees the old memory first and loses its
// contents.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { release(); }

  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      release();
      data_ = ::operator new(bytes, kAlignment);
      bytes_ = bytes;
      held().fetch_add(bytes, std::memory_order_relaxed);
    }
    return data_;
  }

 private:
  void release() noexcept {
    if (data_ == nullptr) return;
    ::operator delete(data_, kAlignment);
    held().fetch_sub(bytes_, std::memory_order_relaxed);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

void* workspace(Slot slot, std::size_t bytes) {
  // Freed when the thread ends.
  thread_local std::array<Block, static_cast<std::size_t>(Slot::count)> blocks;
  // Never null, also for 0 bytes.
  return blocks[static_cast<std::size_t>(slot)].at_least(bytes == 0 ? 1 : bytes);
}

}  // namespace cpu

std::size_t cpu_workspace_bytes() noexcept { return cpu::held().load(std::memory_order_relaxed); }

}  // namespace shardscope::kernels
