// The clock of emitted events: raw ticks of the processor's time-stamp counter if it is invariant, else
// nanoseconds of CLOCK_MONOTONIC; and the conversion of ticks to nanoseconds, which happens off the hot
// path.
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

/// True if raw ticks come from an invariant counter (constant rate, never stops, synchronised over cores):
/// the processor reports it, or the kernel uses it as its clock source. Determined once.
[[nodiscard]] bool invariant_counter() noexcept;

/// Raw ticks. `use_counter` is invariant_counter(), cached by the caller.
[[nodiscard]] inline std::uint64_t read_ticks(bool use_counter) noexcept {
#if defined(__x86_64__)
  // The builtin instead of __rdtsc(): <x86intrin.h> would add a second to each of the many including files.
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

/// Converts ticks to nanoseconds of CLOCK_MONOTONIC, piecewise linear and continuous. Recalibrated during
/// the run (5 ms after the start, then at doubling intervals up to 1 s), because NTP slews the kernel's
/// clock and because the first estimate of the rate is coarse. The error found by a recalibration is
/// corrected over the next interval instead of by a jump, so converted timestamps never decrease. Not
/// thread-safe.
class TickClock {
 public:
  /// A reading of both clocks; `bracket_ns` bounds the time between the two.
  struct Pair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
    std::int64_t bracket_ns = 0;
  };
  /// Both clocks now.
  [[nodiscard]] static Pair sample() noexcept;

  TickClock();
  /// Also converts timestamps since `earlier`: the rate until now is the one between the two samples.
  explicit TickClock(const Pair& earlier);
  /// Takes a new sample if one is due. Call every few milliseconds.
  void update();
  [[nodiscard]] std::int64_t to_ns(std::uint64_t ticks) const noexcept;
  /// Largest recent difference between a converted timestamp and CLOCK_MONOTONIC, plus the uncertainty of
  /// reading both at once.
  [[nodiscard]] std::int64_t error_ns() const noexcept { return error_ns_; }

 private:
  struct Segment {
    std::uint64_t ticks = 0;  ///< start of the segment
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
