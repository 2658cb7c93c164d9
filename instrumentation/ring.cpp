#include "instrumentation/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace shardscope::instrumentation {

namespace {
constexpr std::size_t kDrainAhead = 96;  ///< words
}  // namespace

Ring::Ring(std::size_t capacity)
    : words_(std::max<std::size_t>(capacity, 2) * kLongest), use_counter_(invariant_counter()) {
  void* memory = mmap(nullptr, words_ * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  array_ = static_cast<std::uint64_t*>(memory);
  base_ = reinterpret_cast<std::uintptr_t>(array_);
}

Ring::~Ring() { munmap(array_, words_ * sizeof(std::uint64_t)); }

__attribute__((noinline, cold)) std::uint64_t* Ring::make_room() noexcept {
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  // Skipped words lie in one piece before the end: with them the record must fit in what the consumer has
  // left.
  const std::uint64_t rest = turn_ + words_ - head;
  const std::uint64_t skipped = rest < kLongest ? rest : 0;
  if (head + skipped + kLongest > tail + words_) {
    // One writer, so no read-modify-write is needed.
    dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return nullptr;
  }
  if (rest < kLongest) {
    if (rest != 0) array_[head - turn_] = kSkip;
    head += rest;
    turn_ = head;
    base_ = reinterpret_cast<std::uintptr_t>(array_) - turn_ * sizeof(std::uint64_t);
    head_.store(head, std::memory_order_release);
  }
  // The first position from which the longest record would reach into what is not drained, or over the end.
  // Where ticks are not the counter's, every event comes here.
  limit_ = use_counter_ ? std::min(tail, turn_) + words_ - kLongest + 1 : 0;
  return array_ + (head - turn_);
}

std::size_t Ring::drain(std::vector<Event>& out) {
  const std::size_t before = out.size();
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  out.reserve(before + (head - tail) / kShort);
  while (tail != head) {
    if (tail == drain_turn_ + words_) drain_turn_ = tail;
    const std::uint64_t* record = array_ + (tail - drain_turn_);
    // The lines lie in the cache of the core that emitted: asked for this far ahead they are here in time.
    // Behind the end of the array it asks for nothing.
    __builtin_prefetch(record + kDrainAhead);
    const auto marks = static_cast<std::uint16_t>(record[0]);
    if ((marks & kSkip) != 0) {
      tail = drain_turn_ + words_;
      continue;
    }
    const bool whole = (marks & kWithoutValues) == 0;
    out.push_back({record[1], static_cast<EventKind>(marks & ~kWithoutValues),
                   static_cast<StreamId>(record[0] >> 16U & 0xFFU),
                   static_cast<std::uint8_t>(record[0] >> 24U), static_cast<std::uint32_t>(record[0] >> 32U),
                   static_cast<std::uint32_t>(record[2]), static_cast<std::uint32_t>(record[2] >> 32U),
                   whole ? static_cast<std::int64_t>(record[3]) : 0,
                   whole ? static_cast<std::int64_t>(record[4]) : 0});
    tail += whole ? kLongest : kShort;
  }
  tail_.store(tail, std::memory_order_release);
  return out.size() - before;
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
    result.fullest_percent = std::max(result.fullest_percent, ring->fill_percent());
    ring->drain(out);
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
