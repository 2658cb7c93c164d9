// Events that are dropped again and again: what is missing is where they were, and the rest is known.
#include <gtest/gtest.h>

#include "app/analysis/spans.h"
#include "app/analysis/summary.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

constexpr std::int64_t kMs = 1'000'000;

/// Computes 95 of 100 parts of the time. Of each period of 25 ms a fifth is dropped, as a ring that is too
/// small does it, and the rank says so when it looks the next time.
TEST(Gaps, OfHeavyDropsAreAsNarrowAsTheDrops) {
  Collector collector(local());
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.settle();
  constexpr int kPeriods = 24;
  constexpr std::int64_t kPeriod = 25 * kMs, kFrom = 10 * kMs, kUntil = 15 * kMs;
  const std::int64_t origin = monotonic_now_ns();
  rank.link->push({event_of(EventKind::step_begin, origin, StreamId::host, 0)}, 0, origin, origin, 25);
  for (int period = 0; period < kPeriods; ++period) {
    const std::int64_t begin = origin + period * kPeriod;
    std::vector<Event> before, after;
    std::uint64_t dropped = 0;
    std::int64_t first = 0, last = 0;
    for (std::int64_t at = 0; at < kPeriod; at += kMs) {
      for (const bool end : {false, true}) {
        const std::int64_t ns = begin + at + (end ? kMs * 95 / 100 : 0);
        if (at >= kFrom && at < kUntil) {
          first = dropped++ == 0 ? ns : first;
          last = ns;
          continue;
        }
        (at < kFrom ? before : after)
            .push_back(
                event_of(end ? EventKind::module_end : EventKind::module_begin, ns, StreamId::compute, 1));
      }
    }
    std::this_thread::sleep_until(Clock::now() + std::chrono::nanoseconds(kPeriod));
    rank.link->push(std::move(before), dropped, first, last + 1, 25);
    rank.link->push(std::move(after), 0, begin, begin + kPeriod, 25);
    rank.link->pump();
  }
  const std::int64_t end = origin + kPeriods * kPeriod;
  rank.link->push({event_of(EventKind::step_end, end, StreamId::host, 0)}, 0, end, end, 25);
  rank.finish();
  ASSERT_TRUE(eventually([&] { return collector.status().finished; }));
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  const auto give_up = Clock::now() + 10s;
  while (viewer.link() != Viewer::Link::ended && Clock::now() < give_up) viewer.poll(store, 2ms);

  const auto missing = static_cast<double>(kPeriods * (kUntil - kFrom));
  double gaps = 0;
  std::uint64_t dropped = 0;
  for (const store::Gap& gap : store.gaps()) {
    gaps += static_cast<double>(gap.end_ns - gap.begin_ns);
    dropped += gap.events;
  }
  EXPECT_EQ(dropped, store.dropped_count());
  EXPECT_EQ(dropped, 10U * kPeriods);
  EXPECT_GT(gaps, 0.9 * missing);
  EXPECT_LT(gaps, 1.3 * missing);
  const analysis::TimePartition time = analysis::partition_time(store, 0, 0, store.end_ns());
  const auto share = [&](std::int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(time.total_ns);
  };
  EXPECT_NEAR(share(time.unrecorded_ns), 0.2, 0.06);
  EXPECT_NEAR(share(time.compute_ns), 0.8 * 0.95, 0.06);
  EXPECT_LT(share(time.idle_ns), 0.08) << "5 % of the time in truth";
}

}  // namespace
}  // namespace shardscope::collector
