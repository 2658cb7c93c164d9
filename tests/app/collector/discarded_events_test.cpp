// What is counted of a rank's processes that a node's collector gives up.
#include "app/collector/discarded_events.h"

#include <gtest/gtest.h>

namespace shardscope::collector {
namespace {

namespace wire = instrumentation::wire;

wire::Batch discarded_batch(std::int64_t at_ns, std::uint64_t dropped) {
  wire::Batch batch;
  batch.events.push_back({});
  batch.events.back().ticks = static_cast<std::uint64_t>(at_ns);
  batch.dropped_here = dropped;
  batch.begin_ns = at_ns - 5;
  batch.end_ns = at_ns;
  return batch;
}

TEST(DiscardedEvents, CountsEventsAndDropsAndTheirTimes) {
  DiscardedEvents discarded;
  EXPECT_TRUE(discarded.empty());
  discarded.add(wire::Body(wire::Text{}));
  EXPECT_TRUE(discarded.empty());
  discarded.add(wire::Body(discarded_batch(100, 3)));
  const wire::Batch drops = discarded.as_drops();
  EXPECT_TRUE(drops.events.empty());
  EXPECT_EQ(drops.dropped_here, 4U);
  EXPECT_EQ(drops.begin_ns, 95);
  EXPECT_EQ(drops.end_ns, 101);
}

/// Of a process that was to report those before it and is given up too.
TEST(DiscardedEvents, HaveTheTimesOfThoseBeforeThem) {
  DiscardedEvents earlier, discarded;
  earlier.add(wire::Body(discarded_batch(100, 0)));
  earlier.add_under_way(1);
  discarded.add(wire::Body(discarded_batch(900, 0)));
  discarded.add(earlier);
  EXPECT_EQ(discarded.as_drops().dropped_here, 2U);
  EXPECT_EQ(discarded.as_drops().begin_ns, 95);
  EXPECT_EQ(discarded.as_drops().end_ns, 901);
  EXPECT_NE(discarded.text(7).find("rank 7: 2 events"), std::string::npos);
  EXPECT_NE(discarded.text(7).find("1 of them sent without a receipt"), std::string::npos);
}

TEST(DiscardedEvents, WithoutTimesAreDropsWithoutARange) {
  DiscardedEvents discarded;
  discarded.add(12);
  EXPECT_EQ(discarded.as_drops().dropped_here, 12U);
  EXPECT_EQ(discarded.as_drops().begin_ns, 0);
  EXPECT_EQ(discarded.as_drops().end_ns, 0);
}

}  // namespace
}  // namespace shardscope::collector
