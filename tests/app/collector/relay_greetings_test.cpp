// What a node's collector says of itself and its ranks to the one above.
#include "app/collector/relay_greetings.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shardscope::collector {
namespace {

namespace wire = instrumentation::wire;

wire::Header header_of(std::uint32_t rank, std::uint64_t process = 7) {
  wire::Header header;
  header.rank = rank;
  header.incarnation = process;
  header.run_id = "run";
  return header;
}

/// Its only hello may have come before the collector above takes messages of its run.
TEST(RelayGreetings, ARankOfARunOfLessThanHalfASecondIsNamedAgainUntilTheCollectorAbovePings) {
  RelayGreetings greetings;
  ASSERT_TRUE(greetings.rank_greets(header_of(3), wire::Hello{}, 10));
  EXPECT_EQ(greetings.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(greetings.passes(header_of(3), 10));
  int times = 0;
  for (int ms = 1; ms < 300; ++ms) {
    if (greetings.node_due(10 + ms * 1e-3)) times += static_cast<int>(greetings.node_hello_sent(true).size());
  }
  EXPECT_GE(times, 2);
  EXPECT_EQ(greetings.pinged(1, 10.3).size(), 1U) << "now it is taken";
  EXPECT_TRUE(greetings.node_due(11));
  EXPECT_TRUE(greetings.node_hello_sent(true).empty()) << "it is known";
}

TEST(RelayGreetings, NoRankIsNamedBeforeItsNode) {
  RelayGreetings greetings;
  ASSERT_TRUE(greetings.rank_greets(header_of(3), wire::Hello{}, 10));
  EXPECT_TRUE(greetings.node_hello_sent(false).empty()) << "the connection takes nothing";
  EXPECT_FALSE(greetings.passes(header_of(3), 10));
  EXPECT_FALSE(greetings.rank_greets(header_of(4), wire::Hello{}, 10)) << "the node's was just tried";
  EXPECT_TRUE(greetings.node_due(11));
  EXPECT_EQ(greetings.node_hello_sent(true).size(), 2U);
  EXPECT_TRUE(greetings.passes(header_of(3), 11));
  EXPECT_FALSE(greetings.rank_greets(header_of(3), wire::Hello{}, 12)) << "the node is named";
  EXPECT_FALSE(greetings.passes(header_of(3), 12)) << "it only says it again";
  greetings.not_taken(3);
  EXPECT_TRUE(greetings.passes(header_of(3), 12));
}

TEST(RelayGreetings, OverAnotherConnectionOrToAnotherCollectorEverythingIsSaidAgain) {
  RelayGreetings greetings;
  static_cast<void>(greetings.rank_greets(header_of(3), wire::Hello{}, 10));
  static_cast<void>(greetings.node_hello_sent(true));
  EXPECT_EQ(greetings.pinged(1, 10).size(), 1U);
  EXPECT_TRUE(greetings.pinged(1, 11).empty());
  EXPECT_EQ(greetings.pinged(2, 12).size(), 1U);
  EXPECT_FALSE(greetings.passes(header_of(3), 12)) << "with the answer to the ping";
  greetings.begin_anew();
  EXPECT_FALSE(greetings.passes(header_of(3), 12)) << "the node is not named there";
  EXPECT_TRUE(greetings.node_due(12));
  EXPECT_EQ(greetings.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(greetings.passes(header_of(3), 12));
}

/// The top takes no message of a rank from where it has not greeted.
TEST(RelayGreetings, WithoutAConnectionNothingIsSaidAndOverTheNextOneEverything) {
  RelayGreetings greetings;
  const wire::Position holds{.position = {.holding = true, .number = 5}};
  static_cast<void>(greetings.rank_greets(header_of(3), wire::Hello{}, 10));
  static_cast<void>(greetings.node_hello_sent(true));
  EXPECT_EQ(greetings.pinged(1, 10).size(), 1U);
  EXPECT_TRUE(greetings.passes(3, holds, 10));
  EXPECT_FALSE(greetings.passes(3, holds, 11));
  greetings.connection_ended();
  EXPECT_FALSE(greetings.passes(3, holds, 12));
  EXPECT_FALSE(greetings.rank_greets(header_of(3), wire::Hello{}, 12));
  EXPECT_FALSE(greetings.node_due(1e9));
  greetings.begin_anew();
  EXPECT_FALSE(greetings.passes(3, holds, 13)) << "before its hello";
  EXPECT_TRUE(greetings.node_due(13));
  EXPECT_EQ(greetings.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(greetings.passes(3, holds, 13));
}

TEST(RelayGreetings, AHelloIsOfOneProcess) {
  RelayGreetings greetings;
  EXPECT_FALSE(greetings.any_rank());
  static_cast<void>(greetings.rank_greets(header_of(3), wire::Hello{}, 10));
  EXPECT_EQ(greetings.run_id(), "run");
  EXPECT_NE(greetings.of(header_of(3)), nullptr);
  EXPECT_EQ(greetings.of(header_of(3, 8)), nullptr);
  EXPECT_EQ(greetings.of(header_of(4)), nullptr);
  greetings.forget_ranks();
  EXPECT_FALSE(greetings.any_rank());
}

}  // namespace
}  // namespace shardscope::collector
