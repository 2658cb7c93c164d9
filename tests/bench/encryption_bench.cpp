// encryption_bench [pairs of runs=12] [millions of events=4]: what encryption costs on the loopback, where a
// collector makes keys by itself. The same events are received and recorded with keys and with --insecure, in
// turns that change their order from pair to pair, by a collector whose publishers are processes of their
// own. Figures are CPU time (getrusage) per event: of the collector's process, and of the publishers', which
// make their events too. The interval of 95 % is of the mean ratio of the pairs.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collector.h"
#include "instrumentation/clock.h"
#include "instrumentation/rank_link.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/child_process.h"

namespace {

using namespace shardscope;
namespace fs = std::filesystem;
constexpr std::uint32_t kPublishers = 2;
constexpr std::size_t kPush = 8192, kQueued = 16U << 20;

double cpu_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Exit status: 0 if all was received and nothing shed.
int publish(const std::string& endpoint, std::uint32_t rank, std::size_t events,
            const store::SyntheticRun& source) {
  using std::chrono::milliseconds;
  instrumentation::GateKeeper gate;
  instrumentation::RankLinkOptions options;
  options.endpoint = endpoint;
  options.gate = &gate;
  options.detail = [] { return 3; };
  instrumentation::RunTables tables = source.tables[0];
  tables.rank = rank;
  tables.world = tables.local_world = kPublishers;
  tables.slices.clear();
  tables.pid = getpid();
  instrumentation::RankLink link(std::move(options), std::move(tables));
  while (!link.collector_alive()) {
    link.pump();
    std::this_thread::sleep_for(milliseconds(5));
  }
  const std::vector<instrumentation::Event>& from = source.chunks[rank % source.chunks.size()].events;
  for (std::size_t done = 0; done < events;) {
    if (link.queued_bytes() > kQueued) {
      link.pump();
      std::this_thread::sleep_for(milliseconds(1));
      continue;
    }
    const std::int64_t now = instrumentation::monotonic_now_ns();
    std::vector<instrumentation::Event> batch;
    const std::size_t count = std::min(kPush, events - done);
    while (batch.size() < count) {
      batch.push_back(from[(done + batch.size()) % from.size()]);
      batch.back().ticks = static_cast<std::uint64_t>(now) + batch.size();
    }
    done += count;
    link.push(std::move(batch), 0, now, now + static_cast<std::int64_t>(count), 0);
    link.pump();
  }
  link.post(instrumentation::wire::Body(
      instrumentation::wire::Finish{0, instrumentation::monotonic_now_ns(), 0, "done"}));
  return link.drain(600) && link.shed() == 0 ? 0 : 1;
}

struct Cost {
  double collector_ns = 0, publishers_ns = 0;  ///< CPU time per event
};

Cost measure(bool insecure, std::size_t events, const store::SyntheticRun& source) {
  const std::string path =
      (fs::temp_directory_path() / ("encryption_bench-" + std::to_string(getpid()) + ".zscope")).string();
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  std::array<char, 64> endpoint{};
  std::vector<pid_t> children;  // before the collector's threads
  for (std::uint32_t p = 0; p < kPublishers; ++p) {
    const pid_t child = fork_bound();
    if (child == 0) {
      if (read(ends[0], endpoint.data(), endpoint.size()) != static_cast<ssize_t>(endpoint.size())) _exit(2);
      _exit(publish(endpoint.data(), p, events / kPublishers, source));
    }
    children.push_back(child);
  }
  const double children_before = cpu_s(RUSAGE_CHILDREN), before = cpu_s(RUSAGE_SELF);
  bool whole = true;
  {
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    options.record_path = path;
    options.insecure = insecure;
    collector::Collector collector(options);
    std::snprintf(endpoint.data(), endpoint.size(), "%s", collector.publish_endpoint().c_str());
    for (std::uint32_t p = 0; p < kPublishers; ++p) {
      if (write(ends[1], endpoint.data(), endpoint.size()) != static_cast<ssize_t>(endpoint.size()))
        std::abort();
    }
    for (const pid_t child : children) {
      int code = 0;
      waitpid(child, &code, 0);
      whole = whole && code == 0;
    }
    collector.stop();
    const collector::CollectorStatus status = collector.status();
    whole = whole && status.events == events && status.dropped == 0 && status.recording_error.empty();
  }
  const double count = static_cast<double>(events) * 1e-9;
  const Cost cost{(cpu_s(RUSAGE_SELF) - before) / count, (cpu_s(RUSAGE_CHILDREN) - children_before) / count};
  close(ends[0]);
  close(ends[1]);
  fs::remove(path);
  if (!whole) {
    std::fprintf(stderr, "encryption_bench: not every event was recorded; the figures would mean nothing\n");
    std::exit(1);
  }
  return cost;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Medians of both, and the mean ratio (keys / --insecure) of the pairs with its interval.
void print(const char* what, const std::vector<double>& keys, const std::vector<double>& open) {
  const auto n = static_cast<double>(keys.size());
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) sum += std::log(keys[i] / open[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) squares += std::pow(std::log(keys[i] / open[i]) - sum / n, 2);
  // Student's quantile to a percent from 5 pairs on.
  const double half = (1.96 + 2.7 / (n - 1)) * std::sqrt(squares / (n - 1) / n);
  std::printf("%s: %.0f ns of CPU per event with keys, %.0f with --insecure: %.2f times [%.2f, %.2f]\n", what,
              median(keys), median(open), std::exp(sum / n), std::exp(sum / n - half),
              std::exp(sum / n + half));
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 12;
  const double millions = argc > 2 ? std::strtod(argv[2], nullptr) : 4;
  if (pairs < 5 || !(millions >= 0.1)) {
    std::fprintf(stderr,
                 "usage: encryption_bench [pairs of runs, 5 or more] [millions of events, 0.1 or more]\n");
    return 2;
  }
  const auto events = static_cast<std::size_t>(millions * 1e6) / kPublishers * kPublishers;
  const store::SyntheticRun source = store::make_synthetic_run({.steps = 8});
  std::array<std::vector<double>, 2> collector, publishers;  // without keys is the second
  for (int pair = 0; pair < pairs; ++pair) {
    for (const std::size_t turn : {0U, 1U}) {
      const std::size_t insecure = (turn + static_cast<std::size_t>(pair)) % 2;
      const Cost cost = measure(insecure == 1, events, source);
      collector[insecure].push_back(cost.collector_ns);
      publishers[insecure].push_back(cost.publishers_ns);
    }
  }
  std::printf("%d pairs of %.1f M events of %u publishers, recorded\n", pairs, millions, kPublishers);
  print("collector", collector[0], collector[1]);
  print("publishers", publishers[0], publishers[1]);
  return 0;
}
