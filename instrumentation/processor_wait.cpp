#include "instrumentation/processor_wait.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "instrumentation/emission_cost.h"

namespace shardscope::instrumentation {

namespace {
constexpr std::int64_t kMs = 1'000'000;
}  // namespace

std::optional<ProcessorWait::Sample> ProcessorWait::take(std::int64_t now_ns) {
  Sample sample;
  bool counted = false;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks_, error)) {
    std::int64_t ran_ns = 0, waited_ns = 0;
    if (!(std::ifstream(task.path() / "schedstat") >> ran_ns >> waited_ns)) continue;  // the thread has ended
    counted = true;
    const auto [it, added] = threads_.try_emplace(task.path().filename().string());
    Thread& thread = it->second;
    if (added) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      thread.publishes = is_publishing_thread(name);
    }
    // A new thread's times count from its start.
    if (!thread.publishes) {
      sample.waited_ns += std::max<std::int64_t>(waited_ns - thread.waited_ns, 0);
      used_ns_ += std::max<std::int64_t>(ran_ns - thread.ran_ns, 0);
    }
    thread.ran_ns = ran_ns;
    thread.waited_ns = waited_ns;
    thread.seen = true;
  }
  std::erase_if(threads_, [](const auto& one) { return !one.second.seen; });
  for (auto& [id, thread] : threads_) thread.seen = false;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  sample.switches = static_cast<std::uint32_t>(std::max<std::int64_t>(usage.ru_nivcsw - switches_, 0));
  switches_ = usage.ru_nivcsw;
  const std::optional<std::int64_t> before = std::exchange(before_ns_, now_ns);
  sample.used_ms = static_cast<std::uint32_t>(std::exchange(used_ns_, used_ns_ % kMs) / kMs);
  if (!counted || !before) return std::nullopt;
  sample.over_ns = now_ns - *before;
  return sample;
}

}  // namespace shardscope::instrumentation
