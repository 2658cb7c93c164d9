// The order of a rank's messages: gaps, repeats, new processes.
#include "app/collector/rank_session.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace shardscope::collector {
namespace {

wire::Header header(std::uint64_t incarnation, std::uint64_t sequence) {
  wire::Header h;
  h.incarnation = incarnation;
  h.sequence = sequence;
  return h;
}

TEST(RankSession, NoticesGapsReplaysAndNewProcesses) {
  RankSession rank(0);
  using Order = RankSession::Order;
  EXPECT_TRUE(rank.accept(header(5, 0), 1).new_process);
  EXPECT_EQ(rank.accept(header(5, 1), 1).missing, 0U);
  EXPECT_EQ(rank.accept(header(5, 4), 1).missing, 2U);
  EXPECT_EQ(rank.accept(header(5, 4), 1).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(5, 2), 1).order, Order::duplicate);
  EXPECT_EQ(rank.row.lost_messages, 2U);
  const auto other = rank.accept(header(6, 0), 1);
  EXPECT_TRUE(other.new_process);
  EXPECT_EQ(other.missing, 0U);
  EXPECT_EQ(rank.accept(header(5, 9), 1).order, Order::stale);
  EXPECT_EQ(rank.row.lost_messages, 2U);
  wire::Batch batch;
  batch.events.resize(1);
  rank.add(std::move(batch), 0);
  EXPECT_EQ(rank.take_chunk().lost_before, 2U);
}

/// [Note: what is sent twice]
TEST(RankSession, RepeatedIsWhatTheSenderMayNotKnowToBeReceived) {
  RankSession rank(0);
  using Order = RankSession::Order;
  rank.another_process(5);
  rank.route = "control";
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rank.accept(header(5, i), 10).order, Order::next);
  rank.confirmed(10);
  rank.control_received(10.1);
  EXPECT_EQ(rank.accept(header(5, 0), 10.2).order, Order::again) << "the confirmation may be on its way";
  for (std::uint64_t i = 10; i < 20; ++i) EXPECT_EQ(rank.accept(header(5, i), 11).order, Order::next);
  rank.confirmed(11);
  EXPECT_EQ(rank.unconfirmed(), 0U);
  EXPECT_EQ(rank.accept(header(5, 0), 60).order, Order::again) << "it may have been cut off";
  EXPECT_NE(rank.unconfirmed(), 0U) << "so it is due again";
  rank.control_received(60);
  EXPECT_EQ(rank.accept(header(5, 9), 60).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(5, 10), 60).order, Order::again);
  rank.control_received(60 + RankSession::kConfirmationLasts_s);
  EXPECT_EQ(rank.accept(header(5, 19), 63).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(6, 0), 64).order, Order::next);
  rank.another_process(6);
  EXPECT_EQ(rank.accept(header(6, 0), 64).order, Order::again) << "another process knows nothing of that";
}

wire::Batch batch_at(std::int64_t ns) {
  wire::Batch batch;
  batch.events.resize(1);
  batch.events[0].kind = instrumentation::EventKind::tokens;
  batch.events[0].ticks = static_cast<std::uint64_t>(ns);
  return batch;
}

/// What waits to be a chunk when another process comes, perhaps from another host, stays where it was in
/// time.
/// A sender whose window is full sends nothing more without it.
TEST(RankSession, WhatMayHaveBeenCutOffIsConfirmedAgainOverTheNextConnection) {
  RankSession rank(0);
  using Order = RankSession::Order;
  rank.control_incarnation = 5;
  rank.another_route("first");
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rank.accept(header(5, i), 10).order, Order::next);
  rank.confirmed(10);
  EXPECT_EQ(rank.unconfirmed(), 0U);
  rank.another_route("second");
  EXPECT_EQ(rank.unconfirmed(), 10U);
  rank.confirmed(11);
  rank.control_received(20);
  rank.control_received(20 + RankSession::kConfirmationLasts_s);  // so that one has arrived
  for (std::uint64_t i = 10; i < 14; ++i) EXPECT_EQ(rank.accept(header(5, i), 23).order, Order::next);
  rank.confirmed(24);
  rank.route.clear();
  EXPECT_EQ(rank.accept(header(5, 10), 25).order, Order::again) << "before its hello";
  EXPECT_EQ(rank.accept(header(5, 9), 25).order, Order::duplicate);
  rank.another_route("third");
  EXPECT_EQ(rank.unconfirmed(), 4U);
}

TEST(RankSession, EventsOfAReplacedProcessStayOnItsClock) {
  RankSession rank(0);
  rank.another_process(5);
  rank.clock.add(10'000, 3'000, 3'000, 10'000);  // 7 us behind
  (void)rank.accept(header(5, 0), 1);
  rank.add(batch_at(3'000), 0);
  rank.another_process(6);
  rank.clock.add(10'000, 12'000, 12'000, 10'000);  // 2 us ahead
  (void)rank.accept(header(5, 1), 1);
  rank.add(batch_at(3'500), 0);
  (void)rank.accept(header(6, 0), 1);
  EXPECT_TRUE(rank.on_refinable_clock());
  rank.add(batch_at(12'500), 0);
  const store::Chunk before = rank.take_chunk(), after = rank.take_chunk();
  EXPECT_EQ(before.events.size(), 2U);
  EXPECT_EQ(before.clock_offset_ns, 7'000);
  EXPECT_EQ(after.clock_offset_ns, -2'000);
  EXPECT_FALSE(rank.pending());

  // A process whose first message came before its hello is on no clock that is known.
  (void)rank.accept(header(7, 0), 1);
  EXPECT_FALSE(rank.clock_known());
  EXPECT_FALSE(rank.on_refinable_clock());
}

TEST(RankSession, BelievesNoNumberThatIsFurtherAheadThanAProcessCanHaveSent) {
  RankSession rank(0);
  using Order = RankSession::Order;
  EXPECT_EQ(rank.accept(header(5, std::uint64_t{1} << 63), 1).order, Order::implausible)
      << "of a new process";
  EXPECT_EQ(rank.accept(header(5, 3), 1).missing, 3U) << "which may have been there for long";
  EXPECT_EQ(rank.accept(header(5, std::uint64_t{1} << 63), 2).order, Order::implausible);
  EXPECT_EQ(rank.accept(header(5, UINT64_MAX), 2).order, Order::implausible);
  const auto far = static_cast<std::uint64_t>(RankSession::kMostPerSecond) + RankSession::kMostAtOnce;
  EXPECT_EQ(rank.accept(header(5, 4 + far + 1), 2).order, Order::implausible) << "within a second";
  EXPECT_EQ(rank.accept(header(5, 4), 2).missing, 0U) << "the next right one counts on where it was";
  EXPECT_EQ(rank.row.lost_messages, 3U);
  EXPECT_EQ(rank.accept(header(5, 5 + far), 3).missing, far) << "what can be is believed";
  EXPECT_EQ(rank.row.lost_messages, 3 + far);
}

TEST(RankSession, ManyRestartsOfARankTakeNoMemory) {
  RankSession rank(0);
  using Order = RankSession::Order;
  (void)rank.accept(header(1, 0), 1);
  const std::uint64_t many = 100'000;
  for (std::uint64_t process = 2; process <= many; ++process) {
    ASSERT_TRUE(rank.accept(header(process, 0), 1).new_process);
    ASSERT_EQ(rank.accept(header(1, process), 1).order, Order::stale)
        << "a process that keeps sending stays known";
  }
  EXPECT_EQ(rank.accept(header(many - 1, 1), 1).order, Order::stale);
  EXPECT_EQ(rank.known_replaced(), RankSession::kKnownReplaced);
}

TEST(RankSession, DropsAreTakenFromTotalsSoALostMessageHidesNone) {
  RankSession rank(3);
  (void)rank.accept(header(5, 0), 1);
  const auto batch = [](std::uint64_t total, std::uint64_t here, std::vector<std::uint64_t> times) {
    wire::Batch b;
    b.dropped_total = total;
    b.dropped_here = here;
    for (const std::uint64_t t : times) {
      b.events.emplace_back();
      b.events.back().ticks = t;
    }
    return b;
  };
  rank.add(batch(0, 0, {10, 20}), 1);
  rank.add(batch(10, 4, {15, 30}), 1);  // six more were reported in a message that did not come
  EXPECT_TRUE(rank.due(1.06, 0.05));
  EXPECT_FALSE(rank.due(1.02, 0.05));
  const store::Chunk chunk = rank.take_chunk();
  EXPECT_EQ(chunk.rank, 3U);
  EXPECT_EQ(chunk.dropped_before, 10U);
  EXPECT_EQ(chunk.sequence, 0U);
  ASSERT_EQ(chunk.events.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LE(chunk.events[i - 1].ticks, chunk.events[i].ticks);
  EXPECT_FALSE(rank.pending());
  // Large batches become several chunks, numbered without gaps.
  rank.add(batch(10, 0, std::vector<std::uint64_t>(1U << 16, 40)), 2);
  rank.add(batch(10, 0, std::vector<std::uint64_t>(10, 41)), 2);
  EXPECT_TRUE(rank.due(2, 1e9));
  EXPECT_EQ(rank.take_chunk().events.size(), 1U << 16) << "a batch is not cut";
  const store::Chunk rest = rank.take_chunk();
  EXPECT_EQ(rest.events.size(), 10U);
  EXPECT_EQ(rest.sequence, 2U);
}

TEST(RankSession, ABlockOfEventsIsWaitedWithNoLongerWhateverTheAgeOfChunks) {
  RankSession rank(0);
  (void)rank.accept(header(5, 0), 1);
  wire::Batch batch;
  batch.events.resize(RankSession::kEnoughEvents - 1);
  rank.add(batch, 1);
  EXPECT_FALSE(rank.due(1.4, 0.5)) << "not a block yet";
  EXPECT_TRUE(rank.due(1.5, 0.5));
  batch.events.resize(1);
  rank.add(batch, 1.01);
  EXPECT_FALSE(rank.due(1.04, 0.5)) << "the rest of a look may be on its way";
  EXPECT_TRUE(rank.due(1.06, 0.5));
  EXPECT_TRUE(rank.due(1.03, 0.02)) << "never later than the age of chunks";
}

}  // namespace
}  // namespace shardscope::collector
