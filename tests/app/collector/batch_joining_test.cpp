// Which batches of a rank a node's collector passes on as one, and what the joined one says.
#include "app/collector/batch_joining.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace shardscope::collector {
namespace {

constexpr std::uint64_t kSource = 7;

/// Of one message of the rank, number `sequence`, at as many milliseconds.
wire::Batch batch_of(std::uint64_t sequence, std::size_t events = 2) {
  wire::Batch batch;
  const auto at = static_cast<std::int64_t>(sequence) * 1'000'000;
  for (std::size_t i = 0; i < events; ++i) {
    instrumentation::Event event{};
    event.kind = instrumentation::EventKind::loss;
    event.ticks = static_cast<std::uint64_t>(at) + i;
    batch.events.push_back(event);
  }
  batch.clock_ns = batch.clock_realtime_ns = at;
  batch.relay = {kSource, sequence, sequence, 0, 0, 0, 0};
  return batch;
}

void dropped(wire::Batch& batch, std::uint64_t here, std::int64_t begin_ns, std::int64_t end_ns) {
  batch.dropped_here = here;
  batch.begin_ns = begin_ns;
  batch.end_ns = end_ns;
}

TEST(BatchJoining, AJoinedBatchHasAllEventsInOrderAndTheMessagesOfBoth) {
  wire::Batch one = batch_of(5);
  wire::Batch other = batch_of(6);
  one.clock_error_ns = 40;
  other.clock_error_ns = 30;
  other.relay->residual_ns = 3;
  ASSERT_TRUE(may_join(one, other));
  join(one, std::move(other));
  ASSERT_EQ(one.events.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LT(one.events[i - 1].ticks, one.events[i].ticks);
  EXPECT_EQ(one.relay->source_first, 5U);
  EXPECT_EQ(one.relay->source_last, 6U);
  EXPECT_EQ(one.relay->residual_ns, 3) << "of the last";
  EXPECT_EQ(one.clock_ns, 6'000'000);
  EXPECT_EQ(one.clock_error_ns, 40) << "a bound for all of its events";
  EXPECT_TRUE(may_join(one, batch_of(7)));
}

TEST(BatchJoining, WhatIsMissingBeforeABatchStaysBeforeIt) {
  const wire::Batch one = batch_of(5);
  wire::Batch lost = batch_of(6);
  lost.relay->lost_total = 1;
  EXPECT_FALSE(may_join(one, lost)) << "a message of the rank did not arrive between";
  wire::Batch source = batch_of(6);
  source.relay->source_dropped_total = 9;
  EXPECT_FALSE(may_join(one, source)) << "the rank has dropped events between";
  wire::Batch shed = batch_of(6);
  dropped(shed, 3, 5'500'000, 5'600'000);
  EXPECT_FALSE(may_join(one, shed)) << "the node has";
  EXPECT_FALSE(may_join(one, batch_of(7))) << "there was a message between";
  wire::Batch restarted = batch_of(6);
  restarted.relay->source_incarnation = kSource + 1;
  EXPECT_FALSE(may_join(one, restarted));
  EXPECT_FALSE(may_join(one, batch_of(6, 0))) << "one without events reports what is missing";
  wire::Batch direct = batch_of(6);
  direct.relay.reset();
  EXPECT_FALSE(may_join(one, direct));
}

TEST(BatchJoining, WhatWasShedOfOneStretchIsSummedUpAndOtherStretchesStayApart) {
  wire::Batch one = batch_of(5);
  wire::Batch other = batch_of(6);
  dropped(one, 3, 4'000'000, 5'000'000);
  one.dropped_total = 10;
  dropped(other, 4, 5'900'000, 6'000'000);
  other.dropped_total = 14;
  wire::Batch apart = other;
  apart.begin_ns = one.end_ns + kSameGap_ns;
  EXPECT_FALSE(may_join(one, apart));
  ASSERT_TRUE(may_join(one, other));
  join(one, std::move(other));
  EXPECT_EQ(one.dropped_here, 7U);
  EXPECT_EQ(one.dropped_total, 14U);
  EXPECT_EQ(one.begin_ns, 4'000'000);
  EXPECT_EQ(one.end_ns, 6'000'000);
  join(one, batch_of(7));
  EXPECT_EQ(one.dropped_here, 7U);
  EXPECT_EQ(one.end_ns, 6'000'000) << "of what is missing, not of the batch";
  EXPECT_EQ(one.dropped_total, 14U);
}

TEST(BatchJoining, AJoinedBatchIsNoLargerThanOneOfARank) {
  const wire::Batch most = batch_of(5, kMostJoinedEvents - 1);
  EXPECT_TRUE(may_join(most, batch_of(6, 1)));
  EXPECT_FALSE(may_join(most, batch_of(6, 2)));
}

}  // namespace
}  // namespace shardscope::collector
