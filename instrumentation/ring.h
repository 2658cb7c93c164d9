// Per-thread event rings: one producer (the emitting thread), one consumer (the publisher). Bounded; a
// push into a full ring is counted and the event is gone. A ring outlives its thread until it is drained.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Set in Event::kind inside a ring when `ticks` already holds nanoseconds (emit_at).
inline constexpr std::uint16_t kTimeIsNs = 0x8000;

class Ring {
 public:
  /// `capacity` events, rounded up to a power of two. Memory is touched here, not while emitting.
  explicit Ring(std::size_t capacity);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Producer. Wait-free. The time is read only when there is room, and last, so that it is as late as the
  /// publication of the event allows.
  void push(const Event& event) noexcept {
    Event* slot = claim();
    if (slot == nullptr) return;
    *slot = event;
    slot->ticks = read_ticks(use_counter_);
    publish();
  }
  /// Producer, with a time in nanoseconds taken elsewhere.
  void push_at(std::int64_t ns, const Event& event) noexcept {
    Event* slot = claim();
    if (slot == nullptr) return;
    *slot = event;
    slot->ticks = static_cast<std::uint64_t>(ns);
    slot->kind = static_cast<EventKind>(static_cast<std::uint16_t>(event.kind) | kTimeIsNs);
    publish();
  }

  /// Consumer: appends everything published so far. Returns the number of events.
  std::size_t drain(std::vector<Event>& out);
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }
  [[nodiscard]] bool empty() const noexcept {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
  }
  void retire() noexcept { retired_.store(true, std::memory_order_release); }
  [[nodiscard]] bool retired() const noexcept { return retired_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint64_t kAhead = 8;

  Event* claim() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - cached_tail_ > mask_) [[unlikely]] {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head - cached_tail_ > mask_) {
        // One writer, so no read-modify-write is needed.
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return nullptr;
      }
    }
    // A ring is larger than the cache, and its lines come back from the consumer's core: asked for this many
    // events ahead, they are there in time. Takes 1 to 2 ns off an event (emit_bench).
    __builtin_prefetch(&slots_[(head + kAhead) & mask_], 1);
    return &slots_[head & mask_];
  }
  void publish() noexcept {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Producer's line.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t cached_tail_ = 0;
  std::uint64_t mask_ = 0;
  Event* slots_ = nullptr;
  std::atomic<std::uint64_t> dropped_{0};
  bool use_counter_ = false;
  // Consumer's line.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<bool> retired_{false};
};

/// All rings of the process. Never destroyed, because threads may emit until the process is gone.
class RingRegistry {
 public:
  static RingRegistry& instance();
  /// Capacity of rings made from now on.
  void set_capacity(std::size_t events);
  /// A new ring for the calling thread; nullptr when memory is short.
  [[nodiscard]] Ring* attach() noexcept;

  struct Drained {
    std::vector<std::size_t> run_begins;  ///< where each ring's events start in `out`
    std::size_t fullest_percent = 0;      ///< of any ring, before draining
  };
  /// Appends every ring's events, ring after ring, and frees rings of threads that have ended. One thread
  /// at a time.
  Drained drain(std::vector<Event>& out);
  /// Events dropped since the process began, by all threads that ever emitted.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Counts events that had no ring to go to.
  void count_lost() noexcept { no_ring_.fetch_add(1, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::size_t capacity_ = 1U << 16;
  std::uint64_t dropped_by_ended_ = 0;
  std::atomic<std::uint64_t> no_ring_{0};
};

}  // namespace shardscope::instrumentation
