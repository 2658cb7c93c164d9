// The hellos that a node's collector sends for itself and its ranks to the one above.
#include "app/collector/relay_hellos.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "app/collector/hello_sum.h"

namespace shardscope::collector {
namespace {

namespace wire = instrumentation::wire;

const std::vector<wire::RelayHello::Range> kRanks3And4{{3, 2}};

wire::Header header_of(std::uint32_t rank, std::uint64_t process = 7) {
  wire::Header header;
  header.rank = rank;
  header.incarnation = process;
  header.run_id = "run";
  return header;
}

/// Its only hello may have come before the collector above takes messages of its run.
TEST(RelayHellos, ARankOfARunOfLessThanHalfASecondIsNamedAgainUntilTheCollectorAbovePings) {
  RelayHellos hellos;
  ASSERT_TRUE(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  static_cast<void>(hellos.lists(kRanks3And4, 10));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(hellos.passes(header_of(3)));
  int times = 0;
  for (int ms = 1; ms < 300; ++ms) {
    if (hellos.node_due(10 + ms * 1e-3)) times += static_cast<int>(hellos.node_hello_sent(true).size());
  }
  EXPECT_GE(times, 2);
  EXPECT_EQ(hellos.pinged(1, 0, 10.3).size(), 1U) << "now it is taken";
  EXPECT_TRUE(hellos.node_due(11));
  EXPECT_TRUE(hellos.node_hello_sent(true).empty()) << "it is known";
}

TEST(RelayHellos, NoRankIsNamedBeforeItsNode) {
  RelayHellos hellos;
  ASSERT_TRUE(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  static_cast<void>(hellos.lists(kRanks3And4, 10));
  EXPECT_TRUE(hellos.node_hello_sent(false).empty()) << "the connection takes nothing";
  EXPECT_FALSE(hellos.passes(header_of(3)));
  EXPECT_FALSE(hellos.rank_hello(header_of(4), wire::Hello{}, 10)) << "the node's was just tried";
  EXPECT_TRUE(hellos.node_due(11));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 2U);
  EXPECT_TRUE(hellos.passes(header_of(3)));
  EXPECT_FALSE(hellos.rank_hello(header_of(3), wire::Hello{}, 12)) << "the node is named";
  EXPECT_FALSE(hellos.passes(header_of(3))) << "it is only a repetition";
  hellos.not_taken(3);
  EXPECT_TRUE(hellos.passes(header_of(3)));
}

TEST(RelayHellos, OverAnotherConnectionOrToAnotherCollectorEverythingIsSaidAgain) {
  RelayHellos hellos;
  static_cast<void>(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  static_cast<void>(hellos.lists(kRanks3And4, 10));
  static_cast<void>(hellos.node_hello_sent(true));
  EXPECT_EQ(hellos.pinged(1, 0, 10).size(), 1U);
  EXPECT_TRUE(hellos.pinged(1, 0, 11).empty());
  EXPECT_EQ(hellos.pinged(2, 0, 12).size(), 1U);
  EXPECT_FALSE(hellos.passes(header_of(3))) << "with the answer to the ping";
  hellos.begin_anew();
  EXPECT_FALSE(hellos.passes(header_of(3))) << "the node is not named there";
  EXPECT_TRUE(hellos.node_due(12));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(hellos.passes(header_of(3)));
}

/// The top takes no message of a rank before a hello of the rank from there.
TEST(RelayHellos, WithoutAConnectionNothingIsSaidAndOverTheNextOneEverything) {
  RelayHellos hellos;
  const wire::Position holds{.position = {.holding = true, .number = 5}};
  static_cast<void>(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  static_cast<void>(hellos.lists(kRanks3And4, 10));
  static_cast<void>(hellos.node_hello_sent(true));
  EXPECT_EQ(hellos.pinged(1, 0, 10).size(), 1U);
  EXPECT_TRUE(hellos.passes(3, holds));
  EXPECT_FALSE(hellos.passes(3, holds));
  hellos.connection_ended();
  EXPECT_FALSE(hellos.passes(3, holds));
  EXPECT_FALSE(hellos.rank_hello(header_of(3), wire::Hello{}, 12));
  EXPECT_FALSE(hellos.node_due(1e9));
  hellos.begin_anew();
  EXPECT_FALSE(hellos.passes(3, holds)) << "before its hello";
  EXPECT_TRUE(hellos.node_due(13));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 1U);
  EXPECT_TRUE(hellos.passes(3, holds));
}

/// Of the ranks that the node named last; the others' hellos are of processes that have gone.
TEST(RelayHellos, WhatTheCollectorAboveHasNotGotIsSaidAgainOnceTheSumsDiffer) {
  using Ranges = std::vector<wire::RelayHello::Range>;
  RelayHellos hellos;
  for (const std::uint32_t rank : {3U, 4U, 9U})
    static_cast<void>(hellos.rank_hello(header_of(rank, 100 + rank), wire::Hello{}, 10));
  static_cast<void>(hellos.lists({{3, 2}, {9, 1}}, 10));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 3U);
  EXPECT_EQ(hellos.pinged(1, 0, 10).size(), 3U);
  const Ranges& present = kRanks3And4;
  const std::uint64_t sum = hellos.lists(present, 10);
  EXPECT_EQ(sum, hello_sum(3, 103) + hello_sum(4, 104));
  EXPECT_TRUE(hellos.pinged(1, sum, 11).empty());
  EXPECT_EQ(hellos.lists(present, 13.5), sum);
  EXPECT_TRUE(hellos.pinged(1, sum, 14).empty());
  static_cast<void>(hellos.rank_hello(header_of(4, 200), wire::Hello{}, 14));
  EXPECT_TRUE(hellos.passes(header_of(4, 200))) << "it was started again";
  const std::uint64_t other = hellos.lists(present, 14.1);
  EXPECT_NE(other, sum);
  EXPECT_TRUE(hellos.pinged(1, sum, 14.5).empty()) << "its hello is under way";
  static_cast<void>(hellos.lists(present, 17.5));
  const auto again = hellos.pinged(1, sum, 17.5);
  ASSERT_EQ(again.size(), 2U) << "without rank 9, which is not there";
  EXPECT_EQ(again[1]->header.incarnation, 200U);
  EXPECT_FALSE(hellos.passes(header_of(4, 200)));
  EXPECT_TRUE(hellos.passes(4, wire::Position{})) << "where it is may not have got there either";
  EXPECT_TRUE(hellos.pinged(1, other, 18.5).empty());
  EXPECT_EQ(hellos.pinged(2, 0, 19).size(), 2U) << "nor is it there for another collector above";
  hellos.begin_anew();
  ASSERT_TRUE(hellos.node_due(19));
  EXPECT_EQ(hellos.node_hello_sent(true).size(), 2U) << "nor over another connection";
}

TEST(RelayHellos, WhereARankIsPassesAgainOfAnotherProcessAndAfterASilence) {
  RelayHellos hellos;
  const wire::Position holds{.position = {.holding = true, .number = 5}};
  static_cast<void>(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  static_cast<void>(hellos.node_hello_sent(true));
  EXPECT_TRUE(hellos.passes(header_of(3)));
  EXPECT_TRUE(hellos.passes(3, holds));
  EXPECT_FALSE(hellos.passes(header_of(3)));
  EXPECT_FALSE(hellos.passes(3, holds));
  EXPECT_TRUE(hellos.passes(header_of(3, 8)));
  EXPECT_TRUE(hellos.passes(3, holds)) << "of another process";
  EXPECT_FALSE(hellos.passes(3, holds));
  hellos.was_silent(3);
  EXPECT_TRUE(hellos.passes(3, holds)) << "a rank that is silent is nowhere for a pause";
  EXPECT_FALSE(hellos.passes(3, holds));
  EXPECT_FALSE(hellos.passes(header_of(3, 8))) << "it is the same process";
}

TEST(RelayHellos, AHelloIsOfOneProcess) {
  RelayHellos hellos;
  EXPECT_FALSE(hellos.any_rank());
  static_cast<void>(hellos.rank_hello(header_of(3), wire::Hello{}, 10));
  EXPECT_EQ(hellos.run_id(), "run");
  EXPECT_NE(hellos.of(header_of(3)), nullptr);
  EXPECT_EQ(hellos.of(header_of(3, 8)), nullptr);
  EXPECT_EQ(hellos.of(header_of(4)), nullptr);
  hellos.forget_ranks();
  EXPECT_FALSE(hellos.any_rank());
}

}  // namespace
}  // namespace shardscope::collector
