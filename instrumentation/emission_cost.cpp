#include "instrumentation/emission_cost.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/event_fields.h"
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
      ring.push(make<EventKind::param_status>(StreamId::gather, {.param = n, .elems = 4096}));
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
  char text[256];
  const bool short_run = elapsed_ns < 1e9;  // for which "0.0 s" would be shown
  const int length = std::snprintf(
      text, sizeof text, "%s%llu events x %.1f ns = %.2f ms of the emitting threads, %.4f %% of %.1f %s; ",
      kEmissionCostPrefix, static_cast<unsigned long long>(cost.events), cost.event_ns, emitting_ns * 1e-6,
      100 * emitting_ns / elapsed_ns, elapsed_ns * (short_run ? 1e-6 : 1e-9), short_run ? "ms" : "s");
  if (cost.publishing_cpu_ns) {
    const auto publishing_ns = static_cast<double>(*cost.publishing_cpu_ns);
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                  "the threads that publish took %.1f ms of a core, %.3f %%", publishing_ns * 1e-6,
                  100 * publishing_ns / elapsed_ns);
  } else {
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                  "what the threads that publish took is not known here");
  }
  return text;
}

std::string stream_times_text(std::int64_t residual_ns) {
  char text[128];
  std::snprintf(text, sizeof text, "%s%.1f µs on the rank's clock", kStreamTimesPrefix,
                static_cast<double>(residual_ns) * 1e-3);
  return text;
}

bool is_about_profiling(std::string_view message) noexcept {
  return message.starts_with(kEmissionCostPrefix) || message.starts_with(kStreamTimesPrefix);
}

bool is_publishing_thread(std::string_view name) noexcept {
  static const std::string kIo = std::to_string(kIoThreadPrefix) + "/ZMQbg";
  return name == kPublishThread || name == kControlThread || name.starts_with(kIo);
}

std::optional<std::int64_t> publishing_cpu_ns() {
  std::int64_t sum = 0;
  bool found = false;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!is_publishing_thread(name)) continue;
    std::int64_t ns = 0;
    if (std::ifstream(task.path() / "schedstat") >> ns) {
      sum += ns;
      found = true;
    }
  }
  if (!found) return std::nullopt;
  return sum;
}

}  // namespace shardscope::instrumentation
