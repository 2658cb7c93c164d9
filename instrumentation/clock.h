// The clock of emission: raw ticks of the processor's time-stamp counter where the machine guarantees
// that it runs evenly and alike on every core, nanoseconds of CLOCK_MONOTONIC otherwise; and the
// conversion of the one into the other, which happens off the hot path.
#pragma once

#include <time.h>

#include <cstdint>
#include <deque>

namespace shardscope::instrumentation {

/// CLOCK_MONOTONIC in nanoseconds.
[[nodiscard]] inline std::int64_t monotonic_now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// True if raw ticks come from a counter that is invariant (constant rate, never stops, synchronised over
/// cores): the processor says so, or the kernel itself keeps time with it. Determined once.
[[nodiscard]] bool invariant_counter() noexcept;

/// Raw ticks; `use_counter` is invariant_counter(), kept by the caller where it is cheap to read.
[[nodiscard]] inline std::uint64_t read_ticks(bool use_counter) noexcept {
#if defined(__x86_64__)
  // __rdtsc() by its own name: <x86intrin.h> would take a second of each of the many files that read this.
  if (use_counter) [[likely]]
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (use_counter) [[likely]] {
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  (void)use_counter;
  return static_cast<std::uint64_t>(monotonic_now_ns());
}

/// Converts ticks to nanoseconds of CLOCK_MONOTONIC, piecewise linear and continuous. Recalibrated while
/// it runs (5 ms after the start, then at doubling intervals up to 1 s), because the kernel's clock is
/// slewed by NTP and because the first estimate of the rate is coarse. What a recalibration finds wrong
/// is corrected over the next interval instead of by a jump, so converted times never go backwards.
/// One thread uses it.
class TickClock {
 public:
  /// A reading of both clocks; `bracket_ns` bounds how far apart the two may be.
  struct Pair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
    std::int64_t bracket_ns = 0;
  };
  /// Both clocks now.
  [[nodiscard]] static Pair sample() noexcept;

  TickClock();
  /// Converts times since `earlier` as well: the rate up to now is that between the two.
  explicit TickClock(const Pair& earlier);
  /// Takes a new sample when one is due. Call every few milliseconds.
  void update();
  [[nodiscard]] std::int64_t to_ns(std::uint64_t ticks) const noexcept;
  /// Largest difference seen lately between a converted time and CLOCK_MONOTONIC, plus the uncertainty of
  /// reading both at once.
  [[nodiscard]] std::int64_t error_ns() const noexcept { return error_ns_; }

 private:
  struct Segment {
    std::uint64_t ticks = 0;  ///< where it starts
    std::int64_t ns = 0;
    double ns_per_tick = 1;
  };
  void begin_at(const Pair& now);

  Pair origin_;
  std::deque<Segment> segments_;  ///< newest last; a few are kept for late events
  std::int64_t interval_ns_ = 5'000'000;
  std::int64_t next_ns_ = 0;
  std::int64_t error_ns_ = 0;
  bool identity_ = false;
};

}  // namespace shardscope::instrumentation
