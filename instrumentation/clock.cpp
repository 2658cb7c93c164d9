#include "instrumentation/clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace shardscope::instrumentation {

namespace {

constexpr std::size_t kSegmentsKept = 8;
constexpr std::int64_t kLongestInterval = 1'000'000'000;

bool detect_invariant_counter() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0) return true;
  // Hypervisors often hide the bit; a kernel that uses the counter as its clock source has verified it.
  std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return static_cast<bool>(source >> name) && name == "tsc";
#elif defined(__aarch64__)
  return true;  // the architecture guarantees it
#else
  return false;
#endif
}

}  // namespace

bool invariant_counter() noexcept {
  static const bool value = detect_invariant_counter();
  return value;
}

TickClock::Pair TickClock::sample() noexcept {
  // Interrupts disturbed the reading with the shortest interval between its two tick reads the least.
  Pair best;
  std::uint64_t best_width = std::numeric_limits<std::uint64_t>::max();
  std::int64_t first_ns = 0;
  std::uint64_t first_ticks = 0;
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = read_ticks(true);
    const std::int64_t ns = monotonic_now_ns();
    const std::uint64_t after = read_ticks(true);
    if (i == 0) {
      first_ns = ns;
      first_ticks = before;
    }
    if (after - before < best_width) {
      best_width = after - before;
      best = {before + best_width / 2, ns, 0};
    }
    if (i == 7 && after > first_ticks) {
      const double rate = static_cast<double>(ns - first_ns) / static_cast<double>(after - first_ticks);
      best.bracket_ns = static_cast<std::int64_t>(std::ceil(rate * static_cast<double>(best_width) / 2)) + 1;
    }
  }
  return best;
}

TickClock::TickClock() : identity_(!invariant_counter()) {
  if (identity_) return;
  origin_ = sample();
  // The first rate is measured over 1 ms: accurate to about 50 ppm, so 250 ns at the first recalibration.
  timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
  begin_at(sample());
}

TickClock::TickClock(const Pair& earlier) : TickClock() {
  // A rate measured over less than 1 ms would be worse than the current one.
  if (identity_ || origin_.ns - earlier.ns < 1'000'000) return;
  segments_.clear();
  origin_ = earlier;
  begin_at(sample());
}

void TickClock::begin_at(const Pair& now) {
  const double rate =
      static_cast<double>(now.ns - origin_.ns) / static_cast<double>(now.ticks - origin_.ticks);
  segments_.push_back({origin_.ticks, origin_.ns, rate});
  next_ns_ = now.ns + interval_ns_;
  error_ns_ = now.bracket_ns + origin_.bracket_ns;
}

void TickClock::update() {
  if (identity_) return;
  if (monotonic_now_ns() < next_ns_) return;
  const Pair now = sample();
  const std::int64_t predicted = to_ns(now.ticks);
  const std::int64_t wrong = predicted - now.ns;
  error_ns_ = std::abs(wrong) + now.bracket_ns;
  interval_ns_ = std::min(interval_ns_ * 2, kLongestInterval);
  next_ns_ = now.ns + interval_ns_;
  // The rate over a long base line, but not longer than the kernel's slewing stays constant.
  double rate = static_cast<double>(now.ns - origin_.ns) / static_cast<double>(now.ticks - origin_.ticks);
  if (now.ns - origin_.ns > 8 * kLongestInterval) origin_ = now;
  if (now.ticks - origin_.ticks == 0) rate = segments_.back().ns_per_tick;
  const double ticks_ahead = static_cast<double>(interval_ns_) / rate;
  const double slewed = (static_cast<double>(interval_ns_) - static_cast<double>(wrong)) / ticks_ahead;
  // Never decreasing, whatever the clocks did (suspend).
  segments_.push_back({now.ticks, predicted, std::clamp(slewed, rate * 0.5, rate * 2)});
  if (segments_.size() > kSegmentsKept) segments_.pop_front();
}

std::int64_t TickClock::to_ns(std::uint64_t ticks) const noexcept {
  if (identity_) return static_cast<std::int64_t>(ticks);
  const Segment* segment = &segments_.front();
  for (auto it = segments_.rbegin(); it != segments_.rend(); ++it) {
    if (ticks >= it->ticks) {
      segment = &*it;
      break;
    }
  }
  const auto passed = static_cast<double>(static_cast<std::int64_t>(ticks - segment->ticks));
  return segment->ns + static_cast<std::int64_t>(passed * segment->ns_per_tick);
}

}  // namespace shardscope::instrumentation
