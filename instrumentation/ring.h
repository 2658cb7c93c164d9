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
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    Event* slot = slot_at(head);
    if (head == limit_) [[unlikely]] {
      slot = claim_slow(head);
      if (slot == nullptr) return;
      if (!use_counter_) {
        fill(slot, event);
        slot->ticks = read_ticks(false);
        publish(head);
        return;
      }
    }
    fill(slot, event);
    slot->ticks = read_ticks(true);
    publish(head);
  }
  /// Producer, with a time in nanoseconds taken elsewhere.
  void push_at(std::int64_t ns, const Event& event) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    Event* slot = slot_at(head);
    if (head == limit_) [[unlikely]] {
      slot = claim_slow(head);
      if (slot == nullptr) return;
    }
    fill(slot, event);
    slot->ticks = static_cast<std::uint64_t>(ns);
    slot->kind = static_cast<EventKind>(static_cast<std::uint16_t>(event.kind) | kTimeIsNs);
    publish(head);
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
  static constexpr std::size_t kAhead = 8;

  // [Note: the fast path of a push]
  // An event costs little more than its time stamp if few instructions surround it. All that can be known in
  // advance is: `limit_` is the first number that needs a look at the consumer's progress, at the end of the
  // array, or at another clock than the counter, so one comparison stands for all three; `base_` is where
  // event 0 would lie if the array had not wrapped, so that a slot is base_ plus a multiple, without a mask.
  // claim_slow() moves both.
  [[nodiscard]] Event* slot_at(std::uint64_t number) const noexcept {
    // As a number, for `base_` lies outside the array from the first wrap on.
    return reinterpret_cast<Event*>(base_ + number * sizeof(Event));
  }
  /// The slot of event `head`, with base_ and limit_ moved on; nullptr if the ring is full, which is counted.
  [[nodiscard]] Event* claim_slow(std::uint64_t head) noexcept;

  /// Everything but the time.
  static void fill(Event* slot, const Event& event) noexcept {
    // A ring is larger than the cache, and its lines come back from the consumer's core: asked for this many
    // events ahead, to be written, they are there in time. Behind the end of the array it asks for nothing.
#if defined(__x86_64__)
    // g++ writes prefetchw only for processors it was told of; every x86-64 since 2006 at least ignores it.
    asm volatile("prefetchw %0" ::"m"(*reinterpret_cast<const char*>(slot + kAhead)));
#else
    __builtin_prefetch(slot + kAhead, 1);
#endif
    slot->kind = event.kind;
    slot->stream = event.stream;
    slot->code = event.code;
    slot->a = event.a;
    slot->b = event.b;
    slot->c = event.c;
    slot->v0 = event.v0;
    slot->v1 = event.v1;
  }
  void publish(std::uint64_t head) noexcept { head_.store(head + 1, std::memory_order_release); }

  // Producer's line.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t limit_ = 0;
  std::uintptr_t base_ = 0;
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
