// The bound on a collector's memory holds when its recorder stalls and its ranks do not.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"
#include "tests/resident_memory.h"

namespace shardscope::collector {
namespace {

constexpr std::size_t kBatch = 1000;

std::vector<Event> busy(std::uint32_t step) {
  std::vector<Event> events;
  std::int64_t at = monotonic_now_ns();
  events.push_back(event_of(EventKind::step_begin, at, StreamId::host, step));
  while (events.size() + 1 < kBatch) {
    const auto n = static_cast<std::uint32_t>(events.size());
    events.push_back(event_of(EventKind::kernel_begin, ++at, StreamId::compute, n));
    events.push_back(event_of(EventKind::kernel_end, ++at, StreamId::compute, n));
  }
  events.push_back(event_of(EventKind::step_end, at, StreamId::host, step));
  return events;
}

/// A thousand encrypted handshakes take a minute where other tests have the processors too.
constexpr auto kLongest = 180s;

/// Plays ranks [first, first + count) in this process; returns its exit status.
int publish(const std::string& endpoint, std::uint32_t first, std::uint32_t count, std::uint32_t world,
            std::uint32_t batches) {
  LinkContext context(count);
  std::vector<std::unique_ptr<GateKeeper>> gates;
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::uint32_t r = 0; r < count; ++r) {
    gates.push_back(std::make_unique<GateKeeper>());
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.gate = gates.back().get();
    options.shared = &context;
    options.queue_bytes = 4U << 20;  // beyond it a rank sheds: it never waits
    links.push_back(std::make_unique<RankLink>(std::move(options), tables_of(first + r, world)));
  }
  const auto pump = [&] {
    for (auto& link : links) link->pump();
  };
  const auto all = [&](const std::function<bool(RankLink&)>& what) {
    return eventually(
        [&] {
          pump();
          return std::all_of(links.begin(), links.end(), [&](const auto& link) { return what(*link); });
        },
        kLongest);
  };
  if (!all([](RankLink& link) { return link.collector_alive(); })) return 2;
  for (std::uint32_t step = 0; step < batches; ++step) {
    for (auto& link : links) {
      std::vector<Event> events = busy(step);
      const auto begin = static_cast<std::int64_t>(events.front().ticks);
      const auto end = static_cast<std::int64_t>(events.back().ticks);
      link->push(std::move(events), 0, begin, end, 0);
      link->pump();
    }
  }
  for (auto& link : links) link->post(wire::Body(wire::Finish{0, monotonic_now_ns(), 0, "done"}));
  return all([](RankLink& link) { return link.finish_received(); }) ? 0 : 3;
}

/// Runs `world` ranks in `processes` processes against a collector whose recorder stalls until most has
/// come, and holds its memory to the bound.
void overload(std::uint32_t world, std::uint32_t processes, std::uint32_t batches,
              std::uint64_t max_bytes = 0) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<pid_t> children;
  for (std::uint32_t p = 0; p < processes; ++p) {
    const pid_t child = fork_bound();  // before there are threads
    if (child == 0) {
      char endpoint[64] = {};
      if (read(ends[0], endpoint, sizeof endpoint) != sizeof endpoint) _exit(4);
      const std::uint32_t first = world * p / processes, last = world * (p + 1) / processes;
      _exit(publish(endpoint, first, last - first, world, batches));
    }
    children.push_back(child);
  }
  const std::string path =
      (std::filesystem::temp_directory_path() / ("memory_test-" + std::to_string(getpid()) + ".zscope"))
          .string();
  const std::size_t before = resident_bytes();
  std::size_t most = 0;
  CollectorOptions options = local();
  options.record_path = path;
  options.intake_bytes = 8U << 20;
  options.retention.max_bytes = max_bytes;
  {
    Collector collector(options);
    auto hold = std::make_unique<IntakeHold>(collector);
    char endpoint[64] = {};
    std::snprintf(endpoint, sizeof endpoint, "%s", collector.publish_endpoint().c_str());
    for (std::uint32_t p = 0; p < processes; ++p) {
      ASSERT_EQ(write(ends[1], endpoint, sizeof endpoint), static_cast<ssize_t>(sizeof endpoint));
    }
    const auto look = [&] { most = std::max(most, resident_bytes()); };
    EXPECT_TRUE(eventually(
        [&] {
          look();
          return collector.status().shed > 0;
        },
        kLongest));
    for (int i = 0; i < 100; ++i) {
      look();
      std::this_thread::sleep_for(5ms);
    }
    hold.reset();
    EXPECT_TRUE(eventually(
        [&] {
          look();
          return collector.status().finished;
        },
        kLongest))
        << collector.status().ranks_finished;
    collector.stop();
    look();
    const CollectorStatus status = collector.status();
    EXPECT_EQ(status.recording_error, "");
    // Every event is recorded or counted as dropped, by the rank or here.
    EXPECT_EQ(status.events - status.shed + status.dropped, std::uint64_t{world} * batches * kBatch);
    EXPECT_GT(status.events * sizeof(Event), 2 * options.intake_bytes) << "the bound was not put to the test";
  }
  for (const pid_t child : children) {
    int code = 0;
    waitpid(child, &code, 0);
    EXPECT_EQ(code, 0);
  }
  close(ends[0]);
  close(ends[1]);
  const std::size_t bound = memory_bound(options, world, 1);
  std::printf("%u ranks: %.1f MiB more than before, bound %.1f MiB\n", world,
              static_cast<double>(most - before) / (1 << 20), static_cast<double>(bound) / (1 << 20));
  EXPECT_LE(most - before, bound);
  std::filesystem::remove(path);
}

TEST(Memory, StaysBelowItsBoundWithARecorderThatStalls) { overload(8, 2, 250); }

/// What it measures of each rank before its events are deleted, too.
TEST(Memory, StaysBelowItsBoundWithARecordingOfLimitedSize) { overload(8, 2, 250, 4'000'000); }

TEST(Memory, StaysBelowItsBoundWithAThousandRanks) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 8192)
    GTEST_SKIP() << "a thousand ranks need 8,192 open files, " << files.rlim_cur << " may be";
  overload(1000, 4, 3);
}

}  // namespace
}  // namespace shardscope::collector
