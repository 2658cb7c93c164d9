// collector_bench [millions of events=16] [seconds with 1,000 ranks=10]: what a collector receives and
// records. The publishers are processes of their own. Throughput is per second of the collector process's CPU
// time, all its threads together, which holds on a busy machine; nothing is paced in the first part but by
// the collector. In the second part "late" is how long after its time a round of events was handed over at
// worst: well below the 100 ms between two rounds the ranks keep their pace.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "instrumentation/clock.h"
#include "instrumentation/rank_link.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/child_process.h"
#include "tests/resident_memory.h"

namespace {

using namespace shardscope;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double process_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What the processes that play ranks say of themselves, in memory that they share with this one.
struct Played {
  double connected_s = 0;  ///< since the beginning: the collector has messages of every rank
  double played_s = 0;     ///< from there: the last event was handed over
  double late_s = 0;       ///< of the round that was
  double told_s = 0;       ///< from the last event: every rank has been thanked for its end
  double cpu_s = 0;
};

/// Real sequences of events of one rank, handed out piece by piece with the present time.
class Player {
 public:
  Player(const std::string& endpoint, std::uint32_t rank, std::uint32_t world,
         const store::SyntheticRun& source, instrumentation::LinkContext* shared = nullptr)
      : source_(source) {
    instrumentation::RankLinkOptions options;
    options.shared = shared;
    options.endpoint = endpoint;
    options.gate = &gate_;
    options.detail = [] { return 3; };
    instrumentation::RunTables tables = source.tables[0];
    tables.rank = rank;
    tables.world = tables.local_world = world;
    tables.slices.clear();
    tables.pid = getpid();
    link_ = std::make_unique<instrumentation::RankLink>(std::move(options), std::move(tables));
    next_ = rank;
  }
  std::size_t push(std::size_t events) {
    std::vector<instrumentation::Event> batch;
    batch.reserve(events);
    const std::int64_t now = instrumentation::monotonic_now_ns();
    // In order of time from call to call, as a publisher hands them over.
    while (batch.size() < events) {
      const auto& from = source_.chunks[next_ % source_.chunks.size()].events;
      if (at_ == 0) shift_ = std::max(static_cast<std::uint64_t>(now), last_) - from.front().ticks;
      for (; at_ < from.size() && batch.size() < events; ++at_) {
        batch.push_back(from[at_]);
        // Real times are uneven, which is most of what a recording has to store of them.
        shift_ += random_() % 512;
        last_ = batch.back().ticks += shift_;
      }
      if (at_ < from.size()) break;
      at_ = 0;
      ++next_;
    }
    link_->push(std::move(batch), 0, now, now, 0);
    link_->pump();
    return events;
  }
  instrumentation::RankLink& link() { return *link_; }
  void finish() {
    link_->post(instrumentation::wire::Body(
        instrumentation::wire::Finish{0, instrumentation::monotonic_now_ns(), 0, "done"}));
  }

 private:
  const store::SyntheticRun& source_;
  instrumentation::GateKeeper gate_;
  std::unique_ptr<instrumentation::RankLink> link_;
  std::size_t next_ = 0, at_ = 0;       ///< chunk and event of `source_` to come
  std::uint64_t shift_ = 0, last_ = 0;  ///< ticks
  std::minstd_rand random_;
};

void wait_for(Player& player) {
  while (!player.link().collector_alive()) {
    player.link().pump();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Exit status of a publisher: 0 if it shed nothing.
int publish_all(const std::string& endpoint, std::uint32_t rank, std::uint32_t world, std::size_t events,
                const store::SyntheticRun& source) {
  Player player(endpoint, rank, world, source);
  wait_for(player);
  for (std::size_t done = 0; done < events;) {
    if (player.link().queued_bytes() > (16U << 20)) {
      player.link().pump();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    done += player.push(std::min<std::size_t>(8192, events - done));
  }
  player.finish();
  const bool all_sent = player.link().drain(600);
  return all_sent && player.link().shed() == 0 ? 0 : 1;
}

int publish_paced(const std::string& endpoint, std::uint32_t first, std::uint32_t count, std::uint32_t world,
                  int rounds, std::size_t each, const store::SyntheticRun& source, Played& played) {
  const auto since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  const auto begin = Clock::now();
  instrumentation::LinkContext context(count);
  std::vector<std::unique_ptr<Player>> players;
  for (std::uint32_t r = first; r < first + count; ++r)
    players.push_back(std::make_unique<Player>(endpoint, r, world, source, &context));
  for (auto& player : players) wait_for(*player);
  played.connected_s = since(begin);
  auto next = Clock::now();
  const auto play = next;
  for (int round = 0; round < rounds; ++round) {
    for (auto& player : players) player->push(each);
    played.late_s = std::max(played.late_s, since(next));
    next += std::chrono::milliseconds(100);
    std::this_thread::sleep_until(next);
  }
  played.played_s = since(play);
  const auto end = Clock::now();
  std::uint64_t shed = 0;
  // Every rank says its end before one is waited for: they are programs of their own otherwise.
  for (auto& player : players) {
    player->finish();
    player->link().pump();
  }
  for (auto& player : players) {
    static_cast<void>(player->link().drain(120));  // what is missing shows in the recording
    shed += player->link().shed();
  }
  played.told_s = since(end);
  played.cpu_s = process_cpu_s();
  return shed == 0 ? 0 : 1;
}

template <typename Publisher>
void measure(const char* what, std::uint32_t publishers, std::size_t events, Publisher publisher) {
  const std::string path =
      (fs::temp_directory_path() / ("collector_bench-" + std::to_string(getpid()) + ".zscope")).string();
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::abort();
  // Forked before the collector's threads exist; each waits for the endpoint.
  std::vector<pid_t> children;
  for (std::uint32_t p = 0; p < publishers; ++p) {
    const pid_t child = fork_bound();
    if (child == 0) {
      char endpoint[64] = {};
      if (read(pipe_ends[0], endpoint, sizeof endpoint) != sizeof endpoint) _exit(2);
      _exit(publisher(std::string(endpoint), p));
    }
    children.push_back(child);
  }
  double cpu = 0, wall = 0, resident = 0;
  collector::CollectorStatus status;
  {
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    options.record_path = path;
    collector::Collector collector(options);
    char endpoint[64] = {};
    std::snprintf(endpoint, sizeof endpoint, "%s", collector.publish_endpoint().c_str());
    const double cpu_begin = process_cpu_s();
    const auto begin = Clock::now();
    for (std::uint32_t p = 0; p < publishers; ++p) {
      if (write(pipe_ends[1], endpoint, sizeof endpoint) != sizeof endpoint) std::abort();
    }
    while (!collector.status().finished &&
           std::chrono::duration<double>(Clock::now() - begin).count() < 300) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      resident = std::max(resident, resident_mib());
    }
    cpu = process_cpu_s() - cpu_begin;
    wall = std::chrono::duration<double>(Clock::now() - begin).count();
    collector.stop();
    status = collector.status();
  }
  int failed = 0;
  for (const pid_t child : children) {
    int code = 0;
    waitpid(child, &code, 0);
    failed += code != 0;
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  std::printf(
      "%s: %.2f M of %.2f M events in %.1f s, %.2f s of CPU: %.2f M events/s of CPU, %.0f %% of a core\n",
      what, static_cast<double>(status.events) * 1e-6, static_cast<double>(events) * 1e-6, wall, cpu,
      static_cast<double>(status.events) / cpu * 1e-6, cpu / wall * 100);
  std::printf(
      "  dropped %llu, rejected %llu, publishers that shed %d, most memory %.0f MiB, file %.2f bytes per "
      "event%s%s\n",
      static_cast<unsigned long long>(status.dropped), static_cast<unsigned long long>(status.rejected),
      failed, resident, static_cast<double>(fs::file_size(path)) / static_cast<double>(status.events),
      status.recording_error.empty() ? "" : ", ", status.recording_error.c_str());
  fs::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  const auto events = static_cast<std::size_t>((argc > 1 ? std::strtod(argv[1], nullptr) : 16) * 1e6);
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // a thousand ranks are some ten thousand descriptors
  setrlimit(RLIMIT_NOFILE, &files);
  const store::SyntheticRun source = store::make_synthetic_run({.steps = 8});
  constexpr std::uint32_t kPublishers = 8;
  measure("8 publishers, as fast as they can", kPublishers, events,
          [&](const std::string& endpoint, std::uint32_t p) {
            return publish_all(endpoint, p, kPublishers, events / kPublishers, source);
          });
  constexpr std::uint32_t kRanks = 1000, kHosts = 4;
  constexpr std::size_t kEach = 200;  // per 100 ms: 2,000 events per second and rank
  void* const memory =
      mmap(nullptr, kHosts * sizeof(Played), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  const std::span<Played> played(new (memory) Played[kHosts], kHosts);
  measure("1,000 ranks at 2,000 events/s", kHosts, kRanks * kEach * 10 * static_cast<std::size_t>(seconds),
          [&](const std::string& endpoint, std::uint32_t p) {
            return publish_paced(endpoint, p * kRanks / kHosts, kRanks / kHosts, kRanks, seconds * 10, kEach,
                                 source, played[p]);
          });
  double cpu = 0;
  Played most;
  for (const Played& p : played) {
    most.connected_s = std::max(most.connected_s, p.connected_s);
    most.played_s = std::max(most.played_s, p.played_s);
    most.late_s = std::max(most.late_s, p.late_s);
    most.told_s = std::max(most.told_s, p.told_s);
    cpu += p.cpu_s;
  }
  std::printf(
      "  all connected after %.2f s; %d s of events took %.2f s, %.0f ms late at worst; every rank thanked "
      "%.2f s "
      "later; playing took %.2f s of CPU\n",
      most.connected_s, seconds, most.played_s, most.late_s * 1e3, most.told_s, cpu);
  return 0;
}
