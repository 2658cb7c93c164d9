// Per-thread event rings: one producer (the emitting thread), one consumer (the publisher). Bounded; a push
// into a full ring drops the event and counts it. A ring outlives its thread until it is drained.
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

/// Set in Event::kind by drain() when `ticks` already holds nanoseconds (emit_at).
inline constexpr std::uint16_t kTimeIsNs = 0x8000;

// [Note: records]
// In the ring an event is a record of 8-byte words: kind, stream, code and a in the first, the timestamp in
// the second, b and c in the third, and v0 and v1 in two more, which are omitted if the compiler knows that
// both are zero: a module's begin and end together then take 48 bytes, less than one cache line. Marks in the
// first word's high bits give the shape. A record never wraps: where the longest would not fit before the end
// of the array, the rest of the array is skipped.
class Ring {
 public:
  /// Capacity for `capacity` events of the longest shape. Pages are touched here, not while emitting.
  explicit Ring(std::size_t capacity);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Producer. Wait-free. The timestamp is read only if there is room, and last, as close to the publication
  /// of the event as possible.
  [[gnu::always_inline]] void push(const Event& event) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    std::uint64_t* record = record_at(head);
    if (head >= limit_) [[unlikely]] {
      record = make_room();
      if (record == nullptr) return;
      head = head_.load(std::memory_order_relaxed);
      if (!use_counter_) {
        const std::size_t words = fill(record, event, 0);
        record[1] = read_ticks(false);
        publish(head + words);
        return;
      }
    }
    const std::size_t words = fill(record, event, 0);
    record[1] = read_ticks(true);
    publish(head + words);
  }
  /// Producer, with a timestamp in nanoseconds taken elsewhere.
  void push_at(std::int64_t ns, const Event& event) noexcept {
    std::uint64_t* record = make_room(&ns);
    if (record == nullptr) return;
    const std::size_t words = fill(record, event, kTimeIsNs);
    record[1] = static_cast<std::uint64_t>(ns);
    publish(head_.load(std::memory_order_relaxed) + words);
  }

  /// Consumer: appends all published events. Returns their number.
  std::size_t drain(std::vector<Event>& out);
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  /// Number of dropped events, and the times of the first and the last, CLOCK_MONOTONIC.
  struct Drops {
    std::uint64_t events = 0;
    std::int64_t first_ns = 0, last_ns = 0;
  };
  /// Consumer: drops since the last call. Concurrent drops are reported by the next call, in an interval that
  /// contains them.
  [[nodiscard]] Drops take_drops(const TickClock& clock) noexcept;
  void forget_drops() noexcept { drops_reported_.store(dropped_.load(std::memory_order_acquire)); }
  /// Events of the longest shape that fit.
  [[nodiscard]] std::size_t capacity() const noexcept { return words_ / kLongest; }
  [[nodiscard]] bool empty() const noexcept {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
  }
  /// Consumer: used part of the ring, in percent.
  [[nodiscard]] std::size_t fill_percent() const noexcept {
    return static_cast<std::size_t>(
        (head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed)) * 100 / words_);
  }
  void retire() noexcept { retired_.store(true, std::memory_order_release); }
  [[nodiscard]] bool retired() const noexcept { return retired_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kShort = 3, kLongest = 5;  ///< words
  static constexpr std::size_t kAhead = 40;               ///< words
  // Marks in a record's kind, in bits that kinds do not use.
  static constexpr std::uint16_t kWithoutValues = 0x4000, kSkip = 0x2000;

  // [Note: the fast path of a push]
  // An event costs little more than its timestamp if few instructions surround it, so conditions are
  // precomputed: `limit_` is the first position that requires a look at the consumer's progress, at the end
  // of the array, or at a clock other than the counter, so one comparison covers all three; `base_` is where
  // word 0 would be if the array had not wrapped, so that a record's address is base_ plus a multiple,
  // without a modulo. make_room() updates both.
  // The event must never have an address: it would be built in memory, by small stores that the processor
  // must merge into wide loads.
  [[nodiscard]] std::uint64_t* record_at(std::uint64_t position) const noexcept {
    // An integer, because `base_` is outside the array after the first wrap.
    return reinterpret_cast<std::uint64_t*>(base_ + position * sizeof(std::uint64_t));
  }
  /// Position of the next record; updates base_, limit_ and, at the end of the array, head_. nullptr if the
  /// ring is full, which is counted. `at_ns`: the event's timestamp, if it is not now.
  [[nodiscard]] std::uint64_t* make_room(const std::int64_t* at_ns = nullptr) noexcept;
  void count_drop(const std::int64_t* at_ns) noexcept;
  void publish(std::uint64_t head) noexcept { head_.store(head, std::memory_order_release); }

  [[nodiscard]] static constexpr std::uint64_t joined(std::uint32_t low, std::uint32_t high) noexcept {
    return low | static_cast<std::uint64_t>(high) << 32U;
  }
  /// Writes everything except the timestamp; returns the record's number of words.
  [[gnu::always_inline]] static std::size_t fill(std::uint64_t* record, const Event& event,
                                                 std::uint16_t marks) noexcept {
    // A ring is larger than the cache, and its lines come back from the consumer's core: prefetched this far
    // ahead for writing, they arrive in time. The prefetch of an address behind the array has no effect.
#if defined(__x86_64__)
    // g++ emits prefetchw only for -march that has it; every x86-64 since 2006 at least ignores it.
    asm volatile("prefetchw %0" ::"m"(record[kAhead]));
#else
    __builtin_prefetch(record + kAhead, 1);
#endif
    // Evaluated by the compiler, not at run time: a comparison would cost more than the two words. Not
    // const, because the language would then evaluate it before inlining, and the result would be
    // false.
    bool without_values =
        __builtin_constant_p(event.v0) && __builtin_constant_p(event.v1) && event.v0 == 0 && event.v1 == 0;
    const auto kind = static_cast<std::uint32_t>(static_cast<std::uint16_t>(event.kind) | marks |
                                                 (without_values ? kWithoutValues : 0));
    record[0] = joined(kind | static_cast<std::uint32_t>(event.stream) << 16U |
                           static_cast<std::uint32_t>(event.code) << 24U,
                       event.a);
    record[2] = joined(event.b, event.c);
    if (without_values) return kShort;
    record[3] = static_cast<std::uint64_t>(event.v0);
    record[4] = static_cast<std::uint64_t>(event.v1);
    return kLongest;
  }

  // Producer's line. Positions count words since the beginning.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t limit_ = 0;
  std::uintptr_t base_ = 0;
  std::uint64_t turn_ = 0;  ///< position of the array's first word
  std::uint64_t words_ = 0;
  std::uint64_t* array_ = nullptr;
  std::atomic<std::uint64_t> dropped_{0};
  bool use_counter_ = false;
  // Times of the first and last event dropped since take_drops(); 0 or INT64_MAX if there is none. Events
  // with their own timestamp in nanoseconds have separate ones.
  std::atomic<std::uint64_t> drop_first_{0}, drop_last_{0};
  std::atomic<std::int64_t> drop_first_ns_{INT64_MAX}, drop_last_ns_{INT64_MAX};
  // Consumer's line.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t drain_turn_ = 0;
  std::atomic<std::uint64_t> drops_reported_{0};
  std::uint64_t last_reported_ = 0;  ///< ticks
  std::atomic<bool> retired_{false};
};

/// All rings of the process. Never destroyed, because threads may emit until the process exits.
class RingRegistry {
 public:
  static RingRegistry& instance();
  /// Capacity of rings created from now on.
  void set_capacity(std::size_t events);
  /// A new ring for the calling thread; nullptr when memory is short.
  [[nodiscard]] Ring* attach() noexcept;

  struct Drained {
    std::vector<std::size_t> run_begins;  ///< index of each ring's first event in `out`
    std::size_t fullest_percent = 0;      ///< of any ring, before draining
    Ring::Drops drops;                    ///< of all rings, if `clock` was given
    std::uint64_t without_ring = 0;       ///< events of threads without a ring, since the last call
  };
  /// Appends every ring's events, ring after ring, and frees the rings of ended threads. Must not run
  /// concurrently.
  Drained drain(std::vector<Event>& out, const TickClock* clock = nullptr);
  /// Excludes drops up to now from later drain() reports.
  void forget_drops();
  /// Events dropped since the process started, by all threads.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Counts an event whose thread has no ring.
  void count_lost() noexcept { no_ring_.fetch_add(1, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::size_t capacity_ = 1U << 16;
  std::uint64_t dropped_by_ended_ = 0, without_ring_reported_ = 0;
  std::atomic<std::uint64_t> no_ring_{0};
};

}  // namespace shardscope::instrumentation
