#include "instrumentation/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace shardscope::instrumentation {

namespace {
// 768 bytes, 12 cache lines: 19 to 32 records before the one being read.
constexpr std::size_t kDrainAhead = 96;  ///< words
}  // namespace

Ring::Ring(std::size_t capacity)
    // Two records at least: `limit_` below then is at least kLongest + 1 words, and a record always fits into
    // an empty ring.
    : words_(std::max<std::size_t>(capacity, 2) * kLongest), use_counter_(invariant_counter()) {
  // MAP_POPULATE takes the page faults here. Without it the first round through the ring would take them on
  // the emitting thread.
  void* memory = mmap(nullptr, words_ * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  array_ = static_cast<std::uint64_t*>(memory);
  base_ = reinterpret_cast<std::uintptr_t>(array_);
}

Ring::~Ring() { munmap(array_, words_ * sizeof(std::uint64_t)); }

/// Producer. Only this thread writes the counter and the times, so load and store suffice and no
/// read-modify-write is needed. `dropped_` is stored last, with release: a consumer that acquires the count
/// sees times that cover every drop it counts. The first time stays until take_drops() has reported it.
void Ring::count_drop(const std::int64_t* at_ns) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const std::uint64_t dropped = dropped_.load(kRelaxed);
  // All earlier drops are reported: a new interval begins. The acquire pairs with the release at the end of
  // take_drops(), so the consumer has read the old times before they are overwritten here. The consumer does
  // not read them again before `dropped_` grows.
  if (dropped == drops_reported_.load(std::memory_order_acquire)) {
    drop_first_.store(0, kRelaxed);
    drop_first_ns_.store(INT64_MAX, kRelaxed);
  }
  if (at_ns == nullptr) {
    // Ticks of one thread never decrease, so the last one is the latest.
    const std::uint64_t now = read_ticks(use_counter_);
    if (drop_first_.load(kRelaxed) == 0) drop_first_.store(now, kRelaxed);
    drop_last_.store(now, kRelaxed);
  } else {
    // Timestamps from elsewhere arrive in any order: both ends are widened.
    const bool none = drop_first_ns_.load(kRelaxed) == INT64_MAX;
    drop_first_ns_.store(none ? *at_ns : std::min(drop_first_ns_.load(kRelaxed), *at_ns), kRelaxed);
    drop_last_ns_.store(none ? *at_ns : std::max(drop_last_ns_.load(kRelaxed), *at_ns), kRelaxed);
  }
  dropped_.store(dropped + 1, std::memory_order_release);
}

/// Consumer. Times are ends of a closed interval that holds every drop counted; it may be wider. The two
/// kinds of time are kept apart because ticks become nanoseconds only here, with the consumer's clock.
Ring::Drops Ring::take_drops(const TickClock& clock) noexcept {
  const std::uint64_t dropped = dropped_.load(std::memory_order_acquire);
  // `drops_reported_` is stored by the consumer alone (forget_drops() runs under the registry's lock, like
  // this).
  Drops out{.events = dropped - drops_reported_.load(std::memory_order_relaxed),
            .first_ns = INT64_MAX,
            .last_ns = INT64_MIN};
  if (out.events == 0) return out;
  if (const std::uint64_t first = drop_first_.load(std::memory_order_relaxed); first != 0) {
    const std::uint64_t last = drop_last_.load(std::memory_order_relaxed);
    // A drop during the last call kept that call's first time; it happened after the last drop which that
    // call reported.
    out.first_ns = clock.to_ns(std::max(first, std::min(last_reported_, last)));
    out.last_ns = clock.to_ns(last);
    last_reported_ = last;
  }
  if (const std::int64_t first = drop_first_ns_.load(std::memory_order_relaxed); first != INT64_MAX) {
    out.first_ns = std::min(out.first_ns, first);
    out.last_ns = std::max(out.last_ns, drop_last_ns_.load(std::memory_order_relaxed));
  }
  // The count read above, not the current one: later drops are reported by the next call.
  drops_reported_.store(dropped, std::memory_order_release);
  return out;
}

/// Producer. Where the ring becomes full, wraps, and `limit_` moves. Not inlined, so that push() stays short.
/// push() comes here once for each `limit_`; push_at(), and push() without the counter, every time.
__attribute__((noinline, cold)) std::uint64_t* Ring::make_room(const std::int64_t* at_ns) noexcept {
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  // Acquire pairs with the release in drain(): the consumer has copied every record before `tail`, so its
  // words may be overwritten. An older value of tail is safe, since tail only grows: it leaves less room,
  // never more.
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  // The skipped words are one block at the end: together with them the record must fit into the free
  // space.
  const std::uint64_t rest = turn_ + words_ - head;
  const std::uint64_t skipped = rest < kLongest ? rest : 0;
  if (head + skipped + kLongest > tail + words_) {
    count_drop(at_ns);
    return nullptr;
  }
  if (rest < kLongest) {
    // The mark takes a single word. With no word left the consumer wraps by
    // itself.
    if (rest != 0) array_[head - turn_] = kSkip;
    head += rest;
    turn_ = head;
    // Wraps around below zero where turn_ * 8 exceeds the address; adding the position in record_at() wraps
    // back.
    base_ = reinterpret_cast<std::uintptr_t>(array_) - turn_ * sizeof(std::uint64_t);
    // Published by itself, ahead of the record: the consumer may skip now, and push() loads head_ again.
    head_.store(head, std::memory_order_release);
  }
  // The first position from which the longest record would overlap undrained records, or the end of the
  // array. Without the tick counter every event comes here.
  // A record at p ends at p + kLongest; that must not pass tail + words_ (the oldest undrained word) nor
  // turn_ + words_ (the end of the array). Hence p < min(tail, turn_) + words_ - kLongest + 1. In between
  // push() looks neither at `tail_` nor at the consumer's cache line.
  limit_ = use_counter_ ? std::min(tail, turn_) + words_ - kLongest + 1 : 0;
  return array_ + (head - turn_);
}

/// Consumer. Copies the records [tail, head), then frees their space by one store.
std::size_t Ring::drain(std::vector<Event>& out) {
  const std::size_t before = out.size();
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  // Pairs with publish(): every word of a record before `head` is visible. One load for the whole call: an
  // emitting thread cannot keep drain() from returning.
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  // An upper bound, from the shortest record: push_back() below does not reallocate.
  out.reserve(before + (head - tail) / kShort);
  while (tail != head) {
    // The producer filled the array to its last word and left no mark.
    if (tail == drain_turn_ + words_) drain_turn_ = tail;
    const std::uint64_t* record = array_ + (tail - drain_turn_);
    // The lines are in the cache of the emitting core: prefetched this far ahead they arrive in time. The
    // prefetch of an address behind the array has no effect.
    __builtin_prefetch(record + kDrainAhead);
    // The low 16 bits of word 0: kind and marks. kTimeIsNs stays in `kind` for the caller.
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

/// Once per thread, with a lock and an allocation; the caller keeps the pointer. The ring stays in `rings_`
/// after its thread has ended (retire()) until a drain has emptied it.
Ring* RingRegistry::attach() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    rings_.push_back(std::make_unique<Ring>(capacity_));
    return rings_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void RingRegistry::forget_drops() {
  const std::lock_guard lock(mutex_);
  for (auto& ring : rings_) ring->forget_drops();
  without_ring_reported_ = no_ring_.load(std::memory_order_relaxed);
}

/// Under the lock for the whole call: attach() waits meanwhile, push() never does. Without a `clock` drops
/// are not taken, and stay for a later call that has one.
RingRegistry::Drained RingRegistry::drain(std::vector<Event>& out, const TickClock* clock) {
  Drained result;
  result.drops = {.events = 0, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
  const std::lock_guard lock(mutex_);
  if (clock != nullptr) {
    const std::uint64_t lost = no_ring_.load(std::memory_order_relaxed);
    result.without_ring = lost - std::exchange(without_ring_reported_, lost);
  }
  for (auto& ring : rings_) {
    // Acquire; the thread's exit stored it after its last push, so the drain below sees every record.
    const bool retired = ring->retired();  // before draining: nothing is pushed after it
    result.run_begins.push_back(out.size());
    result.fullest_percent = std::max(result.fullest_percent, ring->fill_percent());
    // Before there is room again: these drops happened before later events.
    if (const Ring::Drops drops = clock != nullptr ? ring->take_drops(*clock) : Ring::Drops{};
        drops.events != 0) {
      result.drops.events += drops.events;
      result.drops.first_ns = std::min(result.drops.first_ns, drops.first_ns);
      result.drops.last_ns = std::max(result.drops.last_ns, drops.last_ns);
    }
    ring->drain(out);
    if (retired) {
      // dropped() counts all rings of the process, including freed ones.
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
