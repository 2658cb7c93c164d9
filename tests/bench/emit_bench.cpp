// What one event costs the training thread, beside what the machine's own time-stamp read costs. A thread
// empties the rings as the publisher does; bursts with pauses in between, as training emits, so that the
// ring never fills. Prints p50 and p99 over bursts and the ratios that matter, which hold on any machine.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"

namespace {

using namespace shardscope::instrumentation;

constexpr int kBurst = 1000;
constexpr int kBursts = 3000;

struct Cost {
  double p50 = 0, p99 = 0;
};

/// Nanoseconds per call of `work`, over bursts of kBurst calls 200 us apart.
Cost measure(const std::function<void()>& burst) {
  std::vector<double> costs;
  for (int i = 0; i < kBursts; ++i) {
    const std::int64_t begin = monotonic_now_ns();
    burst();
    costs.push_back(static_cast<double>(monotonic_now_ns() - begin) / kBurst);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::sort(costs.begin(), costs.end());
  return {costs[costs.size() / 2], costs[costs.size() * 99 / 100]};
}

template <typename Work>
Cost measure_each(Work work) {
  return measure([&] {
    for (int i = 0; i < kBurst; ++i) work(static_cast<std::uint32_t>(i));
  });
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
  const Cost floor = measure_each([&](std::uint32_t i) { asm volatile("" ::"r"(i)); });
  const Cost stamp = measure_each([&](std::uint32_t) {
    const std::uint64_t ticks = read_ticks(counter);
    asm volatile("" ::"r"(ticks));
  });
  g_detail.store(static_cast<int>(Detail::params));
  const Cost off = measure_each([](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::kernels, .kind = EventKind::kernel_begin, .stream = StreamId::compute, .a = i);
    asm volatile("" ::: "memory");
  });
  const Cost one = measure_each([](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .stream = StreamId::gather, .a = i,
                    .v0 = 4096);
  });
  const Cost pair = measure_each([](std::uint32_t i) {
    SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_begin, .stream = StreamId::compute, .a = i);
    SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_end, .stream = StreamId::compute, .a = i);
  });
  g_detail.store(-1);
  stop.store(true);
  drain.join();
  std::printf("time stamps: %s; %d bursts of %d\n", counter ? "invariant counter" : "clock_gettime", kBursts,
              kBurst);
  print("empty loop", floor);
  print("time-stamp read alone", stamp);
  print("event of a level that is off", off);
  print("one event", one);
  print("begin/end pair", pair);
  std::printf("one event minus time stamp: %.2f ns (target at most 4)\n", one.p50 - stamp.p50);
  std::printf("level off minus empty loop: %.2f ns (target below 1)\n", off.p50 - floor.p50);
  std::printf("dropped: %llu\n", static_cast<unsigned long long>(RingRegistry::instance().dropped()));
  return 0;
}
