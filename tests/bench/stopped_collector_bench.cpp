// stopped_collector_bench [seconds=8] [millions of events per second=8] [threads=4]: what a rank's memory
// does while its collector stalls, and whether every event that it could not keep is counted. The
// collector is a process that records; it is stopped by SIGSTOP, the rank goes on emitting, and at the end
// its count of events is held against what the recording has and says is missing. Exits with 1 where the
// counts differ or memory grew beyond the bound of docs/architecture.md, "What a rank holds".
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "tests/child_process.h"
#include "tests/resident_memory.h"

namespace {

using namespace shardscope;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

/// Exit status: 0 once the rank has reported its end.
int collect(const std::string& path, int endpoint_to) {
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.record_path = path;
  collector::Collector collector(options);
  char endpoint[64] = {};
  std::snprintf(endpoint, sizeof endpoint, "%s", collector.publish_endpoint().c_str());
  if (write(endpoint_to, endpoint, sizeof endpoint) != sizeof endpoint) return 2;
  const auto limit = Clock::now() + 120s;
  while (!collector.status().finished && Clock::now() < limit) std::this_thread::sleep_for(20ms);
  collector.stop();
  return collector.status().finished ? 0 : 1;
}

/// One thread's events, `per_s` a second in bursts of a millisecond, until `stop`.
std::uint64_t emit_paced(double per_s, const std::atomic<bool>& stop) {
  std::uint64_t emitted = 0;
  const auto begin = Clock::now();
  while (!stop.load(std::memory_order_relaxed)) {
    const double due = per_s * std::chrono::duration<double>(Clock::now() - begin).count();
    for (; static_cast<double>(emitted) < due; emitted += 2) {
      SHARDSCOPE_EMIT(instrumentation::Detail::modules, .kind = instrumentation::EventKind::module_begin,
                      .stream = instrumentation::StreamId::compute, .a = 0);
      SHARDSCOPE_EMIT(instrumentation::Detail::modules, .kind = instrumentation::EventKind::module_end,
                      .stream = instrumentation::StreamId::compute, .a = 0);
    }
    std::this_thread::sleep_for(1ms);
  }
  return emitted;
}

/// What all threads emitted in `length`; `most` becomes the most memory seen.
std::uint64_t emit_for(std::chrono::duration<double> length, double per_s, int threads, double& most) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> emitted{0};
  std::vector<std::thread> emitters;
  for (int t = 0; t < threads; ++t)
    emitters.emplace_back([&] { emitted += emit_paced(per_s / threads, stop); });
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(length);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(20ms);
    most = std::max(most, resident_mib());
  }
  stop = true;
  for (std::thread& emitter : emitters) emitter.join();
  return emitted;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 8;
  const double per_s = (argc > 2 ? std::strtod(argv[2], nullptr) : 8) * 1e6;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 4;
  const std::string path =
      (fs::temp_directory_path() / ("stopped_collector-" + std::to_string(getpid()) + ".zscope")).string();
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork_bound();  // before this process has threads
  if (child == 0) _exit(collect(path, ends[1]));
  char endpoint[64] = {};
  if (read(ends[0], endpoint, sizeof endpoint) != sizeof endpoint) std::abort();

  instrumentation::PublisherOptions options;
  options.endpoint = endpoint;
  options.linger_s = 60;
  const double ring_mib =
      static_cast<double>(options.ring_events * sizeof(instrumentation::Event)) / (1 << 20);
  const double bound_mib =
      1.5 * static_cast<double>(options.queue_bytes) / (1 << 20) + threads * ring_mib * (1 + 4 * 5.0 / 3) + 4;
  std::uint64_t emitted = 0, dropped = 0;
  double before = 0, most = 0, measured_s = 0, warm = 0;
  {
    instrumentation::RunTables tables;
    tables.run_id = "stopped";
    tables.world = tables.local_world = 1;
    tables.modules = {{0, instrumentation::kNoId, "", "Root", {}, true}};
    instrumentation::Publisher publisher(options, tables);
    emitted += emit_for(1s, 1e5, threads, warm);  // rings of all threads, buffers, the connection
    before = resident_mib();
    kill(child, SIGSTOP);
    const auto begin = Clock::now();
    emitted += emit_for(std::chrono::duration<double>(seconds), per_s, threads, most);
    measured_s = std::chrono::duration<double>(Clock::now() - begin).count();
    kill(child, SIGCONT);
    publisher.finish(0, "");
    dropped = publisher.dropped();
  }
  int code = 0;
  waitpid(child, &code, 0);
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  const std::uint64_t recorded = store.event_count(), missing = store.dropped_count();
  std::printf("emitted %.2f M events, %.2f M a second while the collector stalled for %.1f s\n",
              static_cast<double>(emitted) * 1e-6, static_cast<double>(emitted) * 1e-6 / measured_s,
              measured_s);
  std::printf("memory of the rank: %.1f MiB before, %.1f more at most; bound %.0f\n", before, most - before,
              bound_mib);
  const bool exact = recorded + missing == emitted;
  std::printf("recorded %llu + missing %llu = %llu, emitted %llu: %s (%llu dropped by the rank)\n",
              static_cast<unsigned long long>(recorded), static_cast<unsigned long long>(missing),
              static_cast<unsigned long long>(recorded + missing), static_cast<unsigned long long>(emitted),
              exact ? "every event is accounted for" : "the counts differ",
              static_cast<unsigned long long>(dropped));
  fs::remove(path);
  return exact && most - before <= bound_mib && code == 0 ? 0 : 1;
}
