// The limit of what is in flight against DeepSpeed's own loop, which asks what is finished; and what a
// prefetch is called by its times.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {
namespace {

/// deepspeed/runtime/zero/partitioned_param_coordinator.py, literally: the host's clock moves only when it
/// waits, and finished events are known by asking.
class DeepSpeedHost {
 public:
  explicit DeepSpeedHost(std::size_t most) : most_(most) {}
  /// Returns when the host goes on; `adds`: an event is recorded (not in a fast leaf fetch).
  std::int64_t handle(std::int64_t now, std::int64_t finishes, bool adds) {
    while (!events_.empty() && events_.front() <= now) events_.pop_front();
    if (events_.size() > most_) {
      now = std::max(now, events_.front());
      events_.pop_front();
    }
    if (adds) events_.push_back(finishes);
    return now;
  }

 private:
  std::size_t most_;
  std::deque<std::int64_t> events_;
};

TEST(InFlightLimit, MakesTheHostWaitWhenDeepSpeedsDoes) {
  std::int64_t waits = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&random](std::uint32_t below) { return static_cast<std::int64_t>(random() % below); };
    const auto most = static_cast<std::size_t>(1 + draw(4));
    DeepSpeedHost theirs(most);
    InFlightLimit<std::size_t> ours(most);
    std::vector<std::int64_t> finishes;
    std::int64_t stream = 0, their_time = 0, our_time = 0;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t work = draw(30);  // of the host, between two handles
      their_time += work;
      our_time += work;
      const bool adds = draw(4) > 0;
      // The stream works in order; several parameters may be of one gather.
      if (draw(3) > 0) stream = std::max(stream, our_time) + draw(50);
      finishes.push_back(stream);
      their_time = theirs.handle(their_time, stream, adds);
      if (const auto oldest = ours.admit()) {
        waits += finishes[*oldest] > our_time ? 1 : 0;
        our_time = std::max(our_time, finishes[*oldest]);
      }
      if (adds) ours.started(finishes.size() - 1);
      ASSERT_EQ(our_time, their_time) << "seed " << seed << " handle " << i << " limit " << most;
      ASSERT_LE(ours.in_flight(), most + 1);
    }
  }
  EXPECT_GT(waits, 1000);
}

TEST(InFlightLimit, NamesTheOldestAndForgetsIt) {
  InFlightLimit<int> limit(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limit.admit(), std::nullopt);
    limit.started(i);
  }
  EXPECT_EQ(limit.in_flight(), 3U);
  EXPECT_EQ(limit.admit(), 0);
  limit.started(3);
  EXPECT_EQ(limit.admit(), 1);
  limit.all_done();
  EXPECT_EQ(limit.admit(), std::nullopt);
}

TEST(InFlightLimit, ZeroStandsForNone) {
  InFlightLimit<int> none(max_ongoing(0));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(none.admit(), std::nullopt);
    none.started(i);
  }
  EXPECT_EQ(none.in_flight(), 0U);
  EXPECT_EQ(max_ongoing(2), 2U);
  EXPECT_EQ(default_switches(Compat::deepspeed).max_ongoing_fetch_events, 2);
  EXPECT_EQ(default_switches(Compat::deepspeed).max_param_reduce_events, 2);
  EXPECT_EQ(default_switches(Compat::notes).max_ongoing_fetch_events, 2);
  EXPECT_EQ(default_switches(Compat::shardscope).max_ongoing_fetch_events, 0);
}

TEST(PrefetchOutcome, ByItsTimes) {
  const auto judge = [](std::int64_t needed, std::int64_t resumed) {
    return judge_prefetch({100, 150, needed, resumed});
  };
  EXPECT_EQ(judge(120, 155).outcome, PrefetchOutcome::late);
  EXPECT_EQ(judge(120, 155).slack_ns, -35);
  EXPECT_EQ(judge(149, 150).outcome, PrefetchOutcome::late);
  EXPECT_EQ(judge(150, 150).outcome, PrefetchOutcome::just_in_time);
  EXPECT_EQ(judge(200, 201).outcome, PrefetchOutcome::just_in_time);
  EXPECT_EQ(judge(200, 201).slack_ns, 50);
  EXPECT_EQ(judge(201, 202).outcome, PrefetchOutcome::early);
  EXPECT_EQ(judge(201, 202).gather_ns, 50);
  EXPECT_EQ(outcome_of_unused(true), PrefetchOutcome::mistargeted);
  EXPECT_EQ(outcome_of_unused(false), PrefetchOutcome::unused);
  EXPECT_STREQ(to_string(PrefetchOutcome::just_in_time), "just in time");
  EXPECT_STREQ(to_string(static_cast<PrefetchOutcome>(9)), "unknown");
}

}  // namespace
}  // namespace shardscope::plan
