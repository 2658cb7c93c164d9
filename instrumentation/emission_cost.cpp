#include "instrumentation/emission_cost.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/ring.h"

namespace shardscope::instrumentation {

namespace {
constexpr int kBursts = 8;
constexpr std::uint32_t kBurst = 1024;
}  // namespace

double calibrated_event_ns() {
  Ring ring(kBurst);
  std::vector<Event> taken;
  taken.reserve(kBurst);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kBursts; ++i) {
    const std::int64_t begin = monotonic_now_ns();
    for (std::uint32_t n = 0; n < kBurst; ++n) {
      ring.push({.kind = EventKind::param_status, .stream = StreamId::gather, .a = n, .v0 = 4096});
    }
    best = std::min(best, monotonic_now_ns() - begin);
    taken.clear();
    ring.drain(taken);
  }
  return static_cast<double>(best) / kBurst;
}

std::string emission_cost_text(const EmissionCost& cost) {
  const double emitting_ns = static_cast<double>(cost.events) * cost.event_ns;
  const auto elapsed_ns = static_cast<double>(std::max<std::int64_t>(cost.elapsed_ns, 1));
  const auto publisher_ns = static_cast<double>(cost.publisher_cpu_ns);
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%s%llu events x %.1f ns = %.2f ms of the emitting threads, %.4f %% of %.1f s; the publisher's thread "
      "took %.1f ms of a core, %.3f %%",
      kEmissionCostPrefix, static_cast<unsigned long long>(cost.events), cost.event_ns, emitting_ns * 1e-6,
      100 * emitting_ns / elapsed_ns, elapsed_ns * 1e-9, publisher_ns * 1e-6,
      100 * publisher_ns / elapsed_ns);
  return text;
}

std::int64_t thread_cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace shardscope::instrumentation
