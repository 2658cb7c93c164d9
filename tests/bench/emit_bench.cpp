// What one event costs the training thread, beside what the machine's own time-stamp read costs. A thread
// empties the rings as the publisher does; bursts with pauses in between, as training emits, so that the
// ring never fills. Prints p50 and p99 over bursts and the ratios that matter, which hold on any machine.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"

namespace {

using namespace shardscope::instrumentation;

constexpr int kBurst = 1000;
constexpr int kBursts = 1500;

struct Cost {
  double p50 = 0, p99 = 0;
};

Cost cost_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? Cost{} : Cost{values[values.size() / 2], values[values.size() * 99 / 100]};
}

/// Nanoseconds per call of `work` over one burst; nothing if the ring was full, because a drop is cheaper
/// than an event.
template <typename Work>
std::optional<double> burst(Work work) {
  const std::uint64_t dropped = RingRegistry::instance().dropped();
  const std::int64_t begin = monotonic_now_ns();
  for (int i = 0; i < kBurst; ++i) work(static_cast<std::uint32_t>(i));
  const auto cost = static_cast<double>(monotonic_now_ns() - begin) / kBurst;
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  if (RingRegistry::instance().dropped() != dropped) return std::nullopt;
  return cost;
}

void print(const char* what, const Cost& cost) {
  std::printf("%-44s p50 %6.2f ns   p99 %6.2f ns\n", what, cost.p50, cost.p99);
}

}  // namespace

int main() {
  std::atomic<bool> stop{false};
  std::thread drain([&] {
    std::vector<Event> events;
    while (!stop.load()) {
      events.clear();
      RingRegistry::instance().drain(events);
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
  });
  const bool counter = invariant_counter();
  const double calibrated = calibrated_event_ns();
  g_detail.store(static_cast<int>(Detail::params));
  const auto nothing = [](std::uint32_t i) { asm volatile("" ::"r"(i)); };
  const auto read_stamp = [&](std::uint32_t) {
    const std::uint64_t ticks = read_ticks(counter);
    asm volatile("" ::"r"(ticks));
  };
  const auto emit_off = [](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::kernels, .kind = EventKind::kernel_begin, .stream = StreamId::compute, .a = i);
    asm volatile("" ::: "memory");
  };
  const auto emit_one = [](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .stream = StreamId::gather, .a = i,
                    .v0 = 4096);
  };
  const auto emit_pair = [](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_begin, .stream = StreamId::compute, .a = i);
    SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_end, .stream = StreamId::compute, .a = i);
  };
  // In turns, so that whatever else the machine does falls on all alike; differences within one turn.
  std::vector<double> floor, stamp, off, one, pair, one_net, off_net, pair_ratio;
  int full = 0;
  for (int i = 0; i < kBursts; ++i) {
    const auto f = burst(nothing), s = burst(read_stamp), o = burst(emit_off), e = burst(emit_one),
               p = burst(emit_pair);
    if (!f || !s || !o || !e || !p) {
      ++full;
      continue;
    }
    floor.push_back(*f);
    stamp.push_back(*s);
    off.push_back(*o);
    one.push_back(*e);
    pair.push_back(*p);
    one_net.push_back(*e - *s);
    off_net.push_back(*o - *f);
    pair_ratio.push_back(*p / (2 * *s));
  }
  g_detail.store(-1);
  stop.store(true);
  drain.join();
  std::printf("time stamps: %s; %d turns of %d calls each, %d left out because the ring was full\n",
              counter ? "invariant counter" : "clock_gettime", kBursts, kBurst, full);
  print("empty loop", cost_of(floor));
  print("time-stamp read alone", cost_of(stamp));
  print("event of a level that is off", cost_of(off));
  print("one event", cost_of(one));
  print("begin/end pair", cost_of(pair));
  std::printf("one event minus time stamp: %.2f ns (target at most 4)\n", cost_of(one_net).p50);
  std::printf("level off minus empty loop: %.2f ns (target below 1)\n", cost_of(off_net).p50);
  std::printf("begin/end pair over two time stamps: %.2f (target: one Tracy zone, see tracy_zone.py)\n",
              cost_of(pair_ratio).p50);
  std::printf("one event over what a rank's report would say (%.2f ns): %.2f\n", calibrated,
              cost_of(one).p50 / calibrated);
  return 0;
}
