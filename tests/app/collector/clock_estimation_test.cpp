// Clocks estimated in a world of this test's own, in which the truth is known: hosts with skewed clocks that
// drift and wander, a network whose ways differ, collectives whose ranks come at different times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "app/collector/clock_estimator.h"
#include "app/collector/collective_clocks.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"

namespace shardscope::collector {
namespace {

using instrumentation::CollectiveOp;
using instrumentation::CollectiveScope;
using instrumentation::Event;
using instrumentation::EventKind;

constexpr double kSecond = 1e9;

/// The collector's clock shows the true time, in nanoseconds.
struct Host {
  double skew_ns = 0, drift_ppm = 0, wander_ppm = 0;
  [[nodiscard]] std::int64_t shows(double t) const {
    constexpr double kPeriod = 90 * kSecond;
    const double turn = 2 * std::numbers::pi / kPeriod;
    return static_cast<std::int64_t>(std::llround(t * (1 + drift_ppm * 1e-6) + skew_ns +
                                                  wander_ppm * 1e-6 / turn * (1 - std::cos(turn * t))));
  }
};

/// Ways there and back, each with its shortest time and what queueing adds on the mean.
struct Network {
  double there_ns = 20'000, back_ns = 20'000, queueing_there_ns = 40'000, queueing_back_ns = 40'000;
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}
  void ping(ClockEstimator& clock, const Host& host, const Network& net, double t) {
    const double there = net.there_ns + waits(net.queueing_there_ns);
    const double back = net.back_ns + waits(net.queueing_back_ns);
    clock.add(static_cast<std::int64_t>(t), host.shows(t + there), host.shows(t + there + 3000),
              static_cast<std::int64_t>(t + there + 3000 + back));
  }
  double waits(double mean) { return std::exponential_distribution<double>(1 / mean)(random_); }

 private:
  std::mt19937 random_;
};

void expect_truth(const ClockEstimator& clock, const Host& host, double t, const std::string& where) {
  const std::int64_t shown = host.shows(t);
  const auto error = shown + clock.offset_ns(shown) - static_cast<std::int64_t>(t);
  EXPECT_LE(std::abs(error), clock.residual_ns(shown) + 1) << where << " at " << t / kSecond << " s";
}

TEST(ClockEstimator, RecoversOffsetAndDriftWithinItsResidual) {
  for (const double drift_ppm : {-80.0, -3.0, 0.0, 5.0, 60.0}) {
    World world(3);
    ClockEstimator clock;
    const Host host{-123'456'789, drift_ppm, 0};
    double t = kSecond;
    for (int i = 0; i < 60; ++i, t += kSecond / 2) {
      world.ping(clock, host, {}, t);
      expect_truth(clock, host, t, "drift " + std::to_string(drift_ppm));
      if (i > 20) {
        EXPECT_LT(clock.residual_ns(host.shows(t)), 120'000)
            << "and the residual is small enough to be of use";
      }
    }
    EXPECT_NEAR(clock.drift_ns_per_s(), -drift_ppm * 1e3, 4'000)
        << "ns per second, at " << drift_ppm << " ppm";
  }
}

TEST(ClockEstimator, BoundsAreStrictWhereTheWaysDifferAndClocksWander) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    World world(seed);
    const Host host{1e12 * (seed % 3), -90.0 + 9.0 * (seed % 20), 0.4};
    const Network net{10'000, 10'000, seed % 2 != 0 ? 3e6 : 30'000, seed % 4 < 2 ? 3e6 : 30'000};
    ClockEstimator clock;
    for (double t = kSecond; t < 200 * kSecond; t += kSecond) {
      world.ping(clock, host, net, t);
      for (const double later : {0.0, 0.3, 0.95}) {
        expect_truth(clock, host, t + later * kSecond, "seed " + std::to_string(seed));
      }
    }
  }
}

TEST(ClockEstimator, AClockThatIsSetIsFollowedAtOnceAndOneThatIsSlewedSoon) {
  World world(5);
  ClockEstimator clock;
  Host host{5e9, 20, 0};
  double t = kSecond;
  const auto run = [&](int seconds, int settling, const char* what) {
    for (int i = 0; i < seconds; ++i, t += kSecond) {
      world.ping(clock, host, {}, t);
      if (i >= settling) expect_truth(clock, host, t, what);
    }
  };
  run(60, 0, "before");
  host.skew_ns -= 1e6;
  run(30, 0, "set back by a millisecond");
  host.skew_ns += 7e12;
  run(30, 0, "set ahead by two hours");
  host.skew_ns -= 300e-6 * t;
  host.drift_ppm += 300;
  run(60, 6, "slewed by 300 ppm");
}

TEST(ClockEstimator, OnTheSameClockTheOffsetIsExactlyZero) {
  ClockEstimator clock;
  clock.same_clock();
  clock.add(100, 5000, 5001, 300);
  EXPECT_FALSE(clock.refine(100, 50, 100, 60));
  EXPECT_EQ(clock.offset_ns(12345), 0);
  EXPECT_EQ(clock.residual_ns(12345), 0);
}

TEST(ClockEstimator, IgnoresTripsThatCannotBe) {
  ClockEstimator clock;
  clock.add(100, 50, 40, 300);
  clock.add(300, 50, 60, 100);
  clock.add(100, 50, 500, 110);
  clock.add(100, INT64_MIN, INT64_MAX, 300);
  EXPECT_FALSE(clock.known());
  clock.add(1000, 50, 60, 2000);
  EXPECT_TRUE(clock.known());
  // Times that no clock shows do not overflow.
  for (const std::int64_t t : {INT64_MIN, INT64_MAX}) EXPECT_GT(clock.residual_ns(t), 0);
}

TEST(ClockEstimator, WhatContradictsTheRoundTripsIsIgnored) {
  ClockEstimator clock;
  EXPECT_FALSE(clock.refine(100, 0, 100, 1)) << "nothing known yet";
  clock.add(1000, 50, 60, 2000);  // 950 to 1940
  EXPECT_FALSE(clock.refine(50, 3000, 60, 4000));
  EXPECT_FALSE(clock.refine(50, 0, 60, 10));
  EXPECT_NEAR(static_cast<double>(clock.residual_ns(55)), 495, 3);
  EXPECT_TRUE(clock.refine(50, 1500, 60, 1520));
  EXPECT_NEAR(static_cast<double>(clock.offset_ns(55)), 1510, 2);
  EXPECT_NEAR(static_cast<double>(clock.residual_ns(55)), 10, 3);
}

TEST(RankSession, EveryEventOfAChunkIsWithinTheResidualWhateverItsClockDriftsMeanwhile) {
  for (const double drift_ppm : {-90.0, 40.0, 300.0}) {
    World world(1);
    RankSession session(0);
    const Host host{-2e9, drift_ppm, 0};
    double t = kSecond;
    for (int i = 0; i < 40; ++i, t += kSecond / 4)
      world.ping(session.clock, host, {1000, 1000, 2000, 2000}, t);
    wire::Batch batch;
    for (int i = 0; i < 1000; ++i) {  // over ten seconds
      Event event;
      event.kind = EventKind::tokens;
      event.v0 = static_cast<std::int64_t>(t - 9 * kSecond + i * kSecond / 100);
      event.ticks = static_cast<std::uint64_t>(host.shows(static_cast<double>(event.v0)));
      batch.events.push_back(event);
    }
    session.add(batch, 0);
    const store::Chunk chunk = session.take_chunk();
    // 1 us a second since the last trip, and what the trips left open.
    EXPECT_LT(chunk.clock_residual_ns, 15'000) << drift_ppm;
    for (const Event& event : chunk.events) {
      ASSERT_LE(std::abs(static_cast<std::int64_t>(event.ticks) + chunk.clock_offset_ns - event.v0),
                chunk.clock_residual_ns)
          << drift_ppm;
    }
    EXPECT_TRUE(std::is_sorted(chunk.events.begin(), chunk.events.end(), [](const Event& a, const Event& b) {
      return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
    }));
  }
}

Event collective(EventKind kind, std::int64_t at, std::uint32_t sequence,
                 CollectiveOp op = CollectiveOp::all_reduce, CollectiveScope scope = CollectiveScope::world) {
  Event event;
  event.kind = kind;
  event.ticks = static_cast<std::uint64_t>(at);
  event.a = sequence;
  event.code = static_cast<std::uint8_t>(op);
  event.c = kind == EventKind::collective_entered ? instrumentation::kNoId
                                                  : instrumentation::collective_code(0, scope, 4);
  return event;
}

TEST(CollectiveClocks, AnEndThatIsOnlyABoundIsNoEvidence) {
  for (const bool bound : {false, true}) {
    CollectiveClockSamples samples;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      std::vector<Event> events = {collective(EventKind::collective_begin, 1000 + rank, 0),
                                   collective(EventKind::collective_end, 5000, 0)};
      if (bound) events[1].c |= instrumentation::kEndIsBound;
      samples.add(rank, 2, events, 0, 1, 1);
    }
    EXPECT_EQ(samples.take().has_value(), !bound);
  }
  EXPECT_EQ(instrumentation::scope_of(instrumentation::collective_code(0, CollectiveScope::world, 4) |
                                      instrumentation::kEndIsBound),
            CollectiveScope::world);
}

TEST(CollectiveClocks, NarrowWhatRoundTripsLeaveOpenAndStayStrict) {
  constexpr std::uint32_t kRanks = 4;
  std::int64_t widest = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    World world(seed);
    // Rank 0 is on the collector's host; the others are a busy network away.
    const Host hosts[kRanks] = {{0, 0, 0}, {7e9, 80, 0.4}, {-3e9, -60, 0.2}, {4e7 + seed, -5.0 * seed, -0.4}};
    const Network net{100'000, 50'000, 400'000, 100'000};
    ClockEstimator clocks[kRanks], trips_only[kRanks];
    clocks[0].same_clock();
    ClockEstimator* const all[kRanks] = {&clocks[0], &clocks[1], &clocks[2], &clocks[3]};
    CollectiveClockSamples samples;
    std::uint32_t sequence = 0;
    std::vector<std::vector<Event>> batches(kRanks);
    for (double t = kSecond; t < 40 * kSecond; t += kSecond / 10) {
      if (std::fmod(t, kSecond) < kSecond / 20) {
        for (std::uint32_t r = 1; r < kRanks; ++r) {
          world.ping(clocks[r], hosts[r], net, t);
          world.ping(trips_only[r], hosts[r], net, t);
        }
      }
      for (int i = 0; i < 4; ++i, ++sequence) {
        const double begin = t + i * kSecond / 50;
        double came[kRanks], last = 0;
        for (std::uint32_t r = 0; r < kRanks; ++r)
          last = std::max(last, came[r] = begin + world.waits(200'000));
        for (std::uint32_t r = 0; r < kRanks; ++r) {
          const double entered = last + 500 + world.waits(3000);
          batches[r].push_back(collective(EventKind::collective_begin, hosts[r].shows(came[r]), sequence));
          batches[r].push_back(collective(EventKind::collective_entered, hosts[r].shows(entered), sequence));
          batches[r].push_back(
              collective(EventKind::collective_end, hosts[r].shows(entered + 90'000), sequence));
        }
      }
      for (std::uint32_t r = 0; r < kRanks; ++r) {
        if ((r + sequence / 4) % 3 == 0) continue;  // late with its batch
        samples.add(r, kRanks, batches[r], 0, 1, t / kSecond);
        batches[r].clear();
      }
      while (const auto whole = samples.take()) EXPECT_EQ(refine_clocks(*whole, all), 0U);
      for (std::uint32_t r = 1; r < kRanks; ++r) {
        expect_truth(clocks[r], hosts[r], t, "rank " + std::to_string(r) + ", seed " + std::to_string(seed));
        if (t < 20 * kSecond) continue;
        const std::int64_t now = hosts[r].shows(t);
        widest = std::max(widest, clocks[r].residual_ns(now));
        EXPECT_LT(clocks[r].residual_ns(now), trips_only[r].residual_ns(now)) << "rank " << r;
      }
    }
  }
  // The way alone leaves 75 us open, whatever is measured; the least of 20 waits of 200 us is far below.
  EXPECT_LT(widest, 40'000);
}

/// Rank 0 is on the collector's clock, rank 1 beside it on one whose offset a round trip bounds to 10 us.
TEST(CollectiveClocks, OfTheRanksOfARunCountTheClocksThatOneCollectiveContradicts) {
  const auto contradicted = [](bool differ, std::int64_t left_ns) {
    Pacing pacing;
    RunIdentity identity("run");
    RankTable ranks(pacing, identity);
    wire::Header first;
    first.incarnation = 7;
    for (std::uint32_t r = 0; r < 2; ++r) {
      RankSession& rank = ranks.session(r);
      rank.another_process(7);
      static_cast<void>(rank.accept(first, 10));
      if (r == 0 || !differ) rank.clock.same_clock();
      if (r == 1 && differ) rank.clock.add(1'000'000, 1'010'000, 1'010'000, 1'020'000);
      ranks.note_change(rank, 10);
    }
    CollectiveClocks clocks;
    wire::Batch batch;
    batch.events = {collective(EventKind::collective_begin, 1'100'000, 0),
                    collective(EventKind::collective_entered, 1'200'000, 0)};
    EXPECT_TRUE(clocks.learn(ranks, 2, ranks.session(0), batch, 10).empty()) << "of one rank alone";
    batch.events = {collective(EventKind::collective_begin, 1'050'000, 0),
                    collective(EventKind::collective_entered, left_ns, 0)};
    return clocks.learn(ranks, 2, ranks.session(1), batch, 10);
  };
  using Wrong = std::vector<std::size_t>;
  EXPECT_EQ(contradicted(true, 1'060'000), Wrong{1}) << "it left 40 us before rank 0 came";
  EXPECT_EQ(contradicted(true, 1'150'000), Wrong{});
  EXPECT_EQ(contradicted(false, 1'060'000), Wrong{}) << "on one clock nothing is compared";
}

class CollectiveSamples : public testing::Test {
 protected:
  void add(std::uint32_t rank, const std::vector<Event>& events, double now_s = 0) {
    samples.add(rank, 2, events, 0, 5, now_s);
  }
  static std::vector<Event> whole(std::uint32_t sequence, std::int64_t came, std::int64_t entered) {
    return {collective(EventKind::collective_begin, came, sequence),
            collective(EventKind::collective_entered, entered, sequence),
            collective(EventKind::collective_end, entered + 1000, sequence)};
  }
  CollectiveClockSamples samples;
};

TEST_F(CollectiveSamples, SamplesOfBothRanksOfACollectiveAreJoined) {
  add(0, whole(7, 100, 400));
  EXPECT_FALSE(samples.take());
  add(1, {collective(EventKind::collective_begin, 5200, 7)});
  EXPECT_FALSE(samples.take());
  add(1, {collective(EventKind::collective_entered, 5300, 7)});
  const auto both = samples.take();
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ((*both)[0].begin_ns, 100);
  EXPECT_EQ((*both)[0].all_arrived_ns, 400);
  EXPECT_EQ((*both)[1].begin_ns, 5200);
  EXPECT_EQ((*both)[1].all_arrived_ns, 5300);
  EXPECT_EQ((*both)[1].error_ns, 5);
  EXPECT_FALSE(samples.take());
}

TEST_F(CollectiveSamples, TheEndCountsWhereItNeedsEveryRankAndOnlyThere) {
  const auto without_entered = [&](CollectiveOp op, std::uint32_t sequence) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      add(r,
          {collective(EventKind::collective_begin, 100, sequence, op),
           collective(EventKind::collective_end, 900, sequence, op)},
          sequence);
    }
    return samples.take();
  };
  const auto reduced = without_entered(CollectiveOp::all_reduce, 1);
  ASSERT_TRUE(reduced);
  EXPECT_EQ((*reduced)[0].all_arrived_ns, 900);
  EXPECT_GT((*reduced)[0].error_ns, 5) << "a stamp on a stream";
  EXPECT_FALSE(without_entered(CollectiveOp::broadcast, 2));
  EXPECT_FALSE(without_entered(CollectiveOp::reduce, 3));
}

TEST_F(CollectiveSamples, CollectivesOfSomeRanksSayNothing) {
  for (std::uint32_t r = 0; r < 2; ++r) {
    add(r, {collective(EventKind::collective_begin, 100, 1, CollectiveOp::all_gather,
                       CollectiveScope::intra_node),
            collective(EventKind::collective_end, 900, 1, CollectiveOp::all_gather,
                       CollectiveScope::intra_node)});
  }
  EXPECT_FALSE(samples.take());
}

TEST_F(CollectiveSamples, OneThatARankHasPassedBeforeIsNotWaitedFor) {
  // While as many as can be watched are: rank 1 is ahead.
  for (std::uint32_t s = 0; s <= CollectiveClockSamples::kSlots; ++s) add(1, whole(s, s, s + 1), 0.1 * s);
  // Of these the last found no room; rank 0 must not begin to watch it.
  add(0, whole(CollectiveClockSamples::kSlots, 10, 20), 20);
  EXPECT_FALSE(samples.take());
  // Its patience with the others is at an end; what comes next is watched again.
  add(1, whole(100, 50, 60), 40);
  add(0, whole(100, 55, 65), 40);
  EXPECT_TRUE(samples.take());
}

TEST_F(CollectiveSamples, ARestartBeginsAnewAndNonsenseIsHarmless) {
  add(0, whole(1000, 100, 400));
  samples.restart();
  add(0, whole(1, 100, 400));
  add(1, {collective(EventKind::collective_begin, 100, 1), collective(EventKind::collective_entered, 50, 1)});
  EXPECT_FALSE(samples.take()) << "rank 1 would have been through before it came";
  add(9, whole(2, 1, 2), 1);  // no such rank
  for (std::uint32_t r = 0; r < 2; ++r) {
    add(r,
        {collective(EventKind::collective_begin, INT64_MIN, 3),
         collective(EventKind::collective_entered, INT64_MAX, 3)},
        2);
    add(r,
        {collective(EventKind::collective_begin, 100, 4),
         collective(EventKind::collective_entered, INT64_MAX, 4)},
        3);
  }
  samples.add(0, 2, whole(5, 1, 2), INT64_MAX, INT64_MAX, 4);
  samples.add(1, 2, whole(5, 1, 2), 0, INT64_MAX, 4);
  EXPECT_FALSE(samples.take());
}

}  // namespace
}  // namespace shardscope::collector
