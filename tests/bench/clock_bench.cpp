// clock_bench [seconds=20] [processes=3]: how well a collector knows the clocks of ranks on other hosts, by
// round trips alone and refined by collectives, in turns. Each rank is a process whose clock is skewed and
// drifts by a known amount; rank 0's is the collector's own. They meet at a barrier in shared memory every
// few milliseconds and tell of it as of a collective; other events carry the true time, so that the error of
// every event is known. Exits with 1 where an error is beyond the residual that was reported. Then what it
// costs the collector: a round trip, and looking for collectives among events.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/collective_clocks.h"
#include "app/collector/collector.h"
#include "instrumentation/rank_link.h"
#include "tests/app/collector/clock_errors.h"
#include "tests/child_process.h"

namespace {

using namespace shardscope;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::HostClock;
using instrumentation::monotonic_now_ns;

HostClock clock_of(std::uint32_t rank, std::int64_t origin_ns) {
  if (rank == 0) return {};
  const double sign = rank % 2 == 0 ? -1 : 1;
  return {.skew_ns = static_cast<std::int64_t>(sign * 3e9 * rank),
          .drift_ppm = sign * 25 * rank,
          .origin_ns = origin_ns};
}

Event event_of(EventKind kind, std::int64_t at, std::uint32_t a) {
  Event event;
  event.kind = kind;
  event.stream = instrumentation::StreamId::host;
  event.ticks = static_cast<std::uint64_t>(at);
  event.a = a;
  event.c = instrumentation::kNoId;
  return event;
}

int run_rank(const std::string& endpoint, std::uint32_t rank, std::uint32_t world, const HostClock& clock,
             pthread_barrier_t* barrier, bool collectives, int samples) {
  instrumentation::GateKeeper gate;
  instrumentation::RankLinkOptions options;
  options.endpoint = endpoint;
  options.gate = &gate;
  options.detail = [] { return 3; };
  if (rank != 0) options.clock_id = "host-" + std::to_string(rank);
  options.clock = clock;
  instrumentation::RunTables tables;
  tables.run_id = "clock-bench";
  tables.rank = rank;
  tables.world = tables.local_world = world;
  tables.elems = 1;
  tables.modules = {{0, instrumentation::kNoId, "", "Root", {}, true}};
  instrumentation::RankLink link(std::move(options), tables);
  std::mt19937 random(rank);
  std::exponential_distribution<double> work_us(1.0 / 1000);
  std::vector<Event> events;
  for (int i = 0; i < samples; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(4000 + work_us(random)));
    const std::int64_t came = monotonic_now_ns();
    pthread_barrier_wait(barrier);
    const std::int64_t met = monotonic_now_ns();
    const auto sequence = static_cast<std::uint32_t>(i);
    if (collectives) {
      events.push_back(event_of(EventKind::collective_begin, clock.at(came), sequence));
      events.push_back(event_of(EventKind::collective_entered, clock.at(met), sequence));
      events.push_back(event_of(EventKind::collective_end, clock.at(met), sequence));
    }
    const std::int64_t now = monotonic_now_ns();
    events.push_back(event_of(EventKind::tokens, clock.at(now), 0));
    events.back().v0 = now;
    if (i % 4 != 0) continue;
    link.push(std::exchange(events, {}), 0, clock.at(came), clock.at(now), 0);
    link.pump();
  }
  link.post(
      instrumentation::wire::Body(instrumentation::wire::Finish{0, clock.at(monotonic_now_ns()), 0, "done"}));
  return link.drain(30) ? 0 : 1;
}

/// Of every rank but the first.
std::map<std::uint32_t, collector::ClockErrors> measure(std::uint32_t world, double seconds,
                                                        bool collectives) {
  auto* barrier = static_cast<pthread_barrier_t*>(
      mmap(nullptr, sizeof(pthread_barrier_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(barrier, &shared, world);
  const std::int64_t origin = monotonic_now_ns();
  const int samples = static_cast<int>(seconds / 5e-3);
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (std::uint32_t r = 0; r < world; ++r) {  // before the collector has threads; its address follows
    int ends[2];
    if (pipe(ends) != 0) std::exit(2);
    const pid_t child = fork_bound();
    if (child == 0) {
      char endpoint[128] = {};
      if (read(ends[0], endpoint, sizeof endpoint) <= 0) _exit(2);
      _exit(run_rank(endpoint, r, world, clock_of(r, origin), barrier, collectives, samples));
    }
    close(ends[0]);
    children.push_back(child);
    pipes.push_back(ends[1]);
  }
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.record_path = (std::filesystem::temp_directory_path() /
                         ("shardscope_clock_bench_" + std::to_string(getpid()) + ".zscope"))
                            .string();
  collector::Collector collector(options);
  const std::string endpoint = collector.publish_endpoint();
  for (const int end : pipes) {
    if (write(end, endpoint.c_str(), endpoint.size() + 1) < 0) std::exit(2);
    close(end);
  }
  const auto limit = Clock::now() + std::chrono::duration<double>(3 * seconds + 60);
  while (!collector.status().finished && Clock::now() < limit) std::this_thread::sleep_for(20ms);
  std::map<std::uint32_t, std::int64_t> residuals;
  collector.read([&](const store::Store& store) {
    for (const auto& row : store.ranks()) residuals[row.rank] = row.clock_residual_ns;
  });
  collector.stop();
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  auto errors = collector::clock_errors(options.record_path);
  errors.erase(0);
  // A small run is one joined chunk with the residual of its worst part.
  for (auto& [rank, of] : errors) of.last_residual_ns = residuals[rank];
  std::filesystem::remove(options.record_path);
  munmap(barrier, sizeof *barrier);
  return errors;
}

bool show(const char* what, const std::map<std::uint32_t, collector::ClockErrors>& ranks) {
  bool within = !ranks.empty();
  for (const auto& [id, r] : ranks) {
    std::printf(
        "%-17s rank %u: residual at the end %.1f us (largest of a chunk %.1f); largest error of %llu events "
        "%.1f us, beyond the residual of their chunk %llu\n",
        what, id, static_cast<double>(r.last_residual_ns) / 1e3, static_cast<double>(r.residual_ns) / 1e3,
        static_cast<unsigned long long>(r.events), static_cast<double>(r.error_ns) / 1e3,
        static_cast<unsigned long long>(r.beyond));
    within = within && r.events > 0 && r.beyond == 0;
  }
  return within;
}

double cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void costs() {
  collector::ClockEstimator clock;
  std::mt19937 random(1);
  std::exponential_distribution<double> way(1.0 / 40'000);
  constexpr int kTrips = 20'000;
  double begin = cpu_ns();
  for (int i = 1; i <= kTrips; ++i) {
    const double t = 1e9 * i, there = way(random), back = way(random);
    const auto at_rank = static_cast<std::int64_t>(t * (1 + 5e-5) + there);
    clock.add(static_cast<std::int64_t>(t), at_rank, at_rank + 3000,
              static_cast<std::int64_t>(t + there + 3000 + back));
  }
  std::printf("a round trip: %.0f ns of CPU\n", (cpu_ns() - begin) / kTrips);
  // A tenth of the events are of collectives.
  std::vector<Event> events(3600);
  collector::CollectiveClockSamples samples;
  constexpr int kBatches = 1000;
  double spent = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      constexpr EventKind kKinds[] = {EventKind::collective_begin, EventKind::collective_entered,
                                      EventKind::collective_end};
      const auto number = static_cast<std::uint32_t>(batch * 120 + static_cast<int>(i / 30));
      events[i] = event_of(i % 30 < 3 ? kKinds[i % 30] : EventKind::param_status,
                           static_cast<std::int64_t>(i) * 1000, number);
    }
    begin = cpu_ns();
    for (std::uint32_t r = 0; r < 2; ++r) samples.add(r, 2, events, 0, 25, 0.1 * batch);
    while (samples.take()) {
    }
    spent += cpu_ns() - begin;
  }
  std::printf("looking for collectives: %.2f ns of CPU an event, only where clocks differ\n",
              spent / (2.0 * kBatches * static_cast<double>(events.size())));
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 20;
  const int world = argc > 2 ? std::atoi(argv[2]) : 3;
  if (seconds < 1 || world < 2 || world > 16) {
    std::fprintf(stderr, "usage: clock_bench [seconds, at least 1] [processes, 2 to 16]\n");
    return 2;
  }
  bool within = true;
  for (int turn = 0; turn < 2; ++turn) {
    within &= show("round trips only", measure(static_cast<std::uint32_t>(world), seconds, false));
    within &= show("with collectives", measure(static_cast<std::uint32_t>(world), seconds, true));
  }
  costs();
  return within ? 0 : 1;
}
