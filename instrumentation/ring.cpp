#include "instrumentation/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace shardscope::instrumentation {

Ring::Ring(std::size_t capacity)
    : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 2)) - 1), use_counter_(invariant_counter()) {
  void* memory = mmap(nullptr, (mask_ + 1) * sizeof(Event), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  slots_ = static_cast<Event*>(memory);
}

Ring::~Ring() { munmap(slots_, (mask_ + 1) * sizeof(Event)); }

__attribute__((noinline, cold)) Event* Ring::claim_slow(std::uint64_t head) noexcept {
  const std::uint64_t capacity = mask_ + 1;
  const std::uint64_t full = tail_.load(std::memory_order_acquire) + capacity;
  if (head == full) {
    // One writer, so no read-modify-write is needed.
    dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return nullptr;
  }
  const std::uint64_t turn = head & ~mask_;  // number of the event in slot 0
  base_ = reinterpret_cast<std::uintptr_t>(slots_) - turn * sizeof(Event);
  // Where ticks are not the counter's, every event comes here.
  limit_ = use_counter_ ? std::min(full, turn + capacity) : head + 1;
  return slot_at(head);
}

std::size_t Ring::drain(std::vector<Event>& out) {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  const std::size_t count = head - tail;
  const std::size_t first = std::min<std::size_t>(count, capacity() - (tail & mask_));
  out.insert(out.end(), slots_ + (tail & mask_), slots_ + (tail & mask_) + first);
  out.insert(out.end(), slots_, slots_ + (count - first));
  tail_.store(head, std::memory_order_release);
  return count;
}

RingRegistry& RingRegistry::instance() {
  static auto* registry = new RingRegistry;  // see the class comment
  return *registry;
}

void RingRegistry::set_capacity(std::size_t events) {
  const std::lock_guard lock(mutex_);
  capacity_ = events;
}

Ring* RingRegistry::attach() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    rings_.push_back(std::make_unique<Ring>(capacity_));
    return rings_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

RingRegistry::Drained RingRegistry::drain(std::vector<Event>& out) {
  Drained result;
  const std::lock_guard lock(mutex_);
  for (auto& ring : rings_) {
    const bool retired = ring->retired();  // before draining: nothing is pushed after it
    result.run_begins.push_back(out.size());
    const std::size_t count = ring->drain(out);
    result.fullest_percent = std::max(result.fullest_percent, count * 100 / ring->capacity());
    if (retired) {
      dropped_by_ended_ += ring->dropped();
      ring.reset();
    }
  }
  std::erase(rings_, nullptr);
  return result;
}

std::uint64_t RingRegistry::dropped() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = dropped_by_ended_ + no_ring_.load(std::memory_order_relaxed);
  for (const auto& ring : rings_) sum += ring->dropped();
  return sum;
}

}  // namespace shardscope::instrumentation
