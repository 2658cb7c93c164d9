// Clocks of ranks on other hosts, converted to the collector's: within the residual that is reported.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "tests/app/collector/clock_errors.h"
#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

TEST(Collector, SkewedClocksAreAlignedWithinTheResidual) {
  Collector collector(local());
  constexpr std::int64_t kSkew = 7'000'000'000;
  Rank straight(collector.publish_endpoint(), 0, 2), skewed(collector.publish_endpoint(), 1, 2, kSkew);
  std::this_thread::sleep_for(600ms);  // some round trips
  straight.step(0);
  skewed.step(0);
  straight.settle();
  skewed.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 2 * kEventsPerStep; }));
  ASSERT_TRUE(eventually([&] {
    std::size_t known = 0;
    collector.read([&](const store::Store& store) {
      for (const auto& row : store.ranks()) known += row.last_ns != 0;
    });
    return known == 2;
  }));
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(store.ranks()[0].clock_offset_ns, 0);
    const auto& row = store.ranks()[1];
    EXPECT_LE(std::abs(row.clock_offset_ns + kSkew), row.clock_residual_ns);
    EXPECT_LT(row.clock_residual_ns, 100'000'000);
    for (const auto& message : store.messages()) EXPECT_LT(message.at_ns, 60'000'000'000) << message.text;
    EXPECT_GT(row.clock_residual_ns, 0);
    // Both ranks' steps come out at nearly the same time.
    ASSERT_EQ(store.steps().size(), 1U);
    EXPECT_LT(store.steps()[0].end_ns - store.steps()[0].begin_ns, 1'000'000'000);
  });
}

/// Both ranks are known to have entered a collective within a microsecond: so well their clocks are known
/// then. A round trip through two threads on each side takes tens of them.
TEST(Collector, CollectivesRefineTheClocksThatRoundTripsBound) {
  Collector collector(local());
  constexpr std::int64_t kSkew = 7'000'000'000;
  constexpr std::int64_t kCollectiveBound_ns = 1000;
  Rank straight(collector.publish_endpoint(), 0, 2), skewed(collector.publish_endpoint(), 1, 2, kSkew);
  std::uint32_t sequence = 0;
  const auto enter_collective = [&](Rank& rank, std::int64_t at) {
    rank.link->push(
        {event_of(EventKind::collective_begin, at, StreamId::gather, sequence),
         event_of(EventKind::collective_entered, at + kCollectiveBound_ns, StreamId::gather, sequence),
         event_of(EventKind::collective_end, at + 90'000, StreamId::gather, sequence)},
        0, at, at + 90'000, 25);
    rank.link->pump();
  };
  store::RankRow row;
  EXPECT_TRUE(eventually([&] {
    const std::int64_t now = monotonic_now_ns();
    enter_collective(straight, now);
    enter_collective(skewed, now + kSkew);
    ++sequence;
    std::this_thread::sleep_for(20ms);
    collector.read([&](const store::Store& store) {
      if (store.ranks().size() == 2) row = store.ranks()[1];
    });
    return row.clock_residual_ns > 0 && row.clock_residual_ns < 5 * kCollectiveBound_ns;
  })) << "residual "
      << row.clock_residual_ns;
  EXPECT_LE(std::abs(row.clock_offset_ns + kSkew), row.clock_residual_ns);
  EXPECT_GE(row.clock_residual_ns, kCollectiveBound_ns) << "the collective itself leaves that open";
}

/// Drift is fitted from four windows of two seconds on. Without it the bound grows by 100 us in every second:
/// what is below `kDriftKnown_ns` after this time knows the drift.
constexpr auto kClockedRun = 10s;
constexpr std::int64_t kDriftKnown_ns = 500'000;
/// Round trips of a machine that is busy with something else are long: for how long one that is not is
/// awaited.
constexpr auto kPatience = 100s;

/// A process whose clock is `clock`: emits events that carry this machine's time in v0, until something is
/// written into the pipe of which `asked_to_end` is the end to read.
int run_clocked_process(const std::string& endpoint, std::uint32_t rank, const HostClock& clock,
                        int asked_to_end) {
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = endpoint;
  options.gate = &gate;
  options.detail = [] { return 3; };
  options.clock_id = "host-" + std::to_string(rank);
  options.clock = clock;
  RankLink link(std::move(options), tables_of(rank, 3));
  pollfd end{.fd = asked_to_end, .events = POLLIN, .revents = 0};
  while (poll(&end, 1, 0) == 0) {
    const std::int64_t now = monotonic_now_ns();
    Event event = event_of(EventKind::tokens, clock.at(now));
    event.v0 = now;
    link.push({event}, 0, clock.at(now), clock.at(now), 0);
    link.pump();
    std::this_thread::sleep_for(10ms);
  }
  link.post(wire::Body(wire::Finish{0, clock.at(monotonic_now_ns()), 0, "done"}));
  return link.drain(30) ? 0 : 1;
}

TEST(Collector, ClocksOfProcessesThatAreSkewedAndDriftAreRecoveredWithinTheResidual) {
  const std::int64_t origin = monotonic_now_ns();
  const HostClock clocks[] = {{.skew_ns = 7'000'000'000, .drift_ppm = 80, .origin_ns = origin},
                              {.skew_ns = -3'000'000'000, .drift_ppm = -60, .origin_ns = origin},
                              {.skew_ns = 40'000'000, .drift_ppm = 0, .origin_ns = origin}};
  // Forked before the collector has threads; each is given its address.
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (std::uint32_t r = 0; r < 3; ++r) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork_bound();
    ASSERT_GE(child, 0);
    if (child == 0) {
      char endpoint[128] = {};
      if (read(ends[0], endpoint, sizeof endpoint) <= 0) _exit(2);
      _exit(run_clocked_process(endpoint, r, clocks[r], ends[0]));
    }
    close(ends[0]);
    children.push_back(child);
    pipes.push_back(ends[1]);
  }
  CollectorOptions recorded = local();
  recorded.record_path = testing::TempDir() + "clocks.zscope";
  std::filesystem::remove(recorded.record_path);
  Collector collector(recorded);
  const std::string endpoint = collector.publish_endpoint();
  for (const int end : pipes) {
    ASSERT_EQ(write(end, endpoint.c_str(), endpoint.size() + 1), static_cast<ssize_t>(endpoint.size() + 1));
  }
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  const auto begin = Clock::now();
  std::map<std::uint32_t, std::int64_t> residuals;
  EXPECT_TRUE(follow(
      viewer, store,
      [&] {
        bool known = store.ranks().size() == 3;
        for (const auto& row : store.ranks()) {
          residuals[row.rank] = row.clock_residual_ns;
          known &= row.clock_residual_ns > 0 && row.clock_residual_ns < kDriftKnown_ns;
        }
        return known && Clock::now() - begin > kClockedRun;
      },
      kPatience))
      << "residuals " << testing::PrintToString(residuals);
  for (const int end : pipes) {
    ASSERT_EQ(write(end, "", 1), 1);
    close(end);
  }
  EXPECT_TRUE(follow(
      viewer, store,
      [&] {
        bool all = true;
        for (const auto& row : store.ranks()) {
          all &= row.finished;
        }
        return all;
      },
      60s));
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(
      follow(viewer, store, [&] { return viewer.link() == Viewer::Link::ended || store.event_count() > 0; }));
  collector.stop();
  auto errors = clock_errors(recorded.record_path);
  for (std::uint32_t r = 0; r < 3; ++r) {
    EXPECT_GT(errors[r].events, 100U) << "rank " << r;
    EXPECT_EQ(errors[r].beyond, 0U) << "rank " << r << ": error " << errors[r].error_ns;
    EXPECT_GT(errors[r].last_residual_ns, 0) << "rank " << r;
    const auto row = std::find_if(store.ranks().begin(), store.ranks().end(),
                                  [&](const store::RankRow& of) { return of.rank == r; });
    EXPECT_GE(row->largest_clock_residual_ns, errors[r].residual_ns) << "rank " << r;
    ASSERT_TRUE(row->clock_drift.has_value()) << "rank " << r;
    // The offset grows by what the clock loses.
    EXPECT_LE(std::abs(row->clock_drift->ppb + clocks[r].drift_ppm * 1e3), row->clock_drift->bound_ppb)
        << "rank " << r;
  }
  std::filesystem::remove(recorded.record_path);
}

}  // namespace
}  // namespace shardscope::collector
