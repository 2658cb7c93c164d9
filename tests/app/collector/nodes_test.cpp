// The collectors of nodes: where each is reached, and when one is silent.
#include "app/collector/nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::collector {
namespace {

using HelloOutcome = Nodes::HelloOutcome;
using Strings = std::vector<std::string>;

TEST(Nodes, OneIsReachedWhereItsLastHelloCameFrom) {
  Nodes nodes;
  EXPECT_EQ(nodes.at("old"), nullptr);
  EXPECT_EQ(nodes.hello_received(7, "old", "alpha", false, 0), HelloOutcome::first);
  Nodes::Node* const node = nodes.at("old");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->host, "alpha");
  EXPECT_EQ(nodes.hello_received(7, "new", "alpha", false, 1), HelloOutcome::again);
  EXPECT_EQ(nodes.at("old"), nullptr);
  EXPECT_EQ(nodes.at("new"), node) << "its clock is kept";
  nodes.clear();
  EXPECT_EQ(nodes.at("new"), nullptr);
}

/// As a peer may say it: nothing of a hello is checked against who is at its route already.
TEST(Nodes, ARouteBelongsToTheLastHelloFromThereAndOnlyItsOwnerGivesItUp) {
  Nodes nodes;
  nodes.hello_received(1, "x", "alpha", false, 0);
  nodes.hello_received(2, "x", "beta", false, 0);
  ASSERT_NE(nodes.at("x"), nullptr);
  EXPECT_EQ(nodes.at("x")->host, "beta");
  EXPECT_EQ(nodes.pings_due(1), Strings{"x"}) << "the first is nowhere now";
  nodes.hello_received(1, "y", "alpha", false, 2);
  ASSERT_NE(nodes.at("x"), nullptr) << "it was not the first's any more";
  EXPECT_EQ(nodes.at("x")->host, "beta");
  EXPECT_EQ(nodes.at("y")->host, "alpha");
  EXPECT_EQ(nodes.pings_due(3), (Strings{"y", "x"}));
  for (const std::string& route : nodes.pings_due(5)) EXPECT_NE(nodes.at(route), nullptr) << route;
}

TEST(Nodes, WhoseConnectionIsTakenByAnotherIsNotAwaited) {
  Nodes nodes;
  nodes.hello_received(1, "x", "alpha", false, 0);
  nodes.at("x")->answer.sent_before(1);
  nodes.hello_received(2, "x", "beta", false, 0);
  EXPECT_FALSE(nodes.any_awaited()) << "its answers cannot be distinguished from the other's";
}

/// One peer may say that it is ever another process.
TEST(Nodes, ThoseThatAreNotReachedAreForgottenUnlessARankIsOnTheirClock) {
  Nodes nodes;
  const Nodes::Node* kept = nullptr;
  const auto in_use = [&](const Nodes::Node& node) { return &node == kept; };
  nodes.hello_received(1, "x", "alpha", false, 0, in_use);
  kept = nodes.at("x");
  for (std::uint64_t process = 2; process < 100; ++process)
    EXPECT_EQ(nodes.hello_received(process, "x", "alpha", false, 0, in_use), HelloOutcome::first);
  EXPECT_EQ(nodes.size(), 2U) << "the one with a rank, and the last";
  EXPECT_EQ(nodes.take_newly_silent(Nodes::kSilent_s + 1).size(), 2U) << "no more are missed";
}

TEST(Nodes, BeyondABoundNoneIsTakenInAndSilentOnesGiveWay) {
  Nodes nodes;
  const auto none = [](const Nodes::Node&) { return false; };
  for (std::uint64_t process = 0; process < Nodes::kMost; ++process)
    nodes.hello_received(process, "route " + std::to_string(process), "alpha", false, 0);
  EXPECT_EQ(nodes.hello_received(Nodes::kMost, "another", "beta", false, 1, none), HelloOutcome::refused);
  EXPECT_EQ(nodes.at("another"), nullptr);
  EXPECT_EQ(nodes.hello_received(5, "route 5", "alpha", false, 6, none), HelloOutcome::again);
  static_cast<void>(nodes.take_newly_silent(Nodes::kSilent_s + 1));
  EXPECT_EQ(nodes.hello_received(Nodes::kMost, "another", "beta", false, 7), HelloOutcome::refused)
      << "all are in use";
  EXPECT_EQ(nodes.hello_received(Nodes::kMost, "another", "beta", false, 7, none), HelloOutcome::first);
  EXPECT_EQ(nodes.size(), 2U) << "that one and the one that is not silent";
  EXPECT_EQ(nodes.at("route 4"), nullptr);
  EXPECT_NE(nodes.at("route 5"), nullptr);
}

TEST(Nodes, ItsFirstHelloSaysWhetherTheClockIsTheSame) {
  Nodes nodes;
  nodes.hello_received(7, "a", "alpha", true, 0);
  nodes.hello_received(8, "b", "beta", false, 0);
  nodes.hello_received(8, "b", "beta", true, 1);
  EXPECT_TRUE(nodes.at("a")->clock.is_same_clock());
  EXPECT_FALSE(nodes.at("b")->clock.is_same_clock());
}

TEST(Nodes, SilenceIsSaidOnceAndEndsWithAHello) {
  Nodes nodes;
  nodes.hello_received(7, "a", "alpha", false, 0);
  nodes.hello_received(8, "b", "beta", false, 0);
  EXPECT_EQ(nodes.received_from("b", 3), nodes.at("b"));
  EXPECT_EQ(nodes.take_newly_silent(Nodes::kSilent_s), Strings{});
  EXPECT_EQ(nodes.take_newly_silent(Nodes::kSilent_s + 0.1), Strings{"alpha"});
  EXPECT_EQ(nodes.take_newly_silent(Nodes::kSilent_s + 0.2), Strings{});
  EXPECT_EQ(nodes.pings_due(7), Strings{"b"}) << "a silent node is not pinged";
  EXPECT_EQ(nodes.hello_received(7, "a", "alpha", false, 8), HelloOutcome::back);
  EXPECT_EQ(nodes.hello_received(7, "a", "alpha", false, 9), HelloOutcome::again);
  EXPECT_EQ(nodes.pings_due(9), (Strings{"a", "b"}));
  EXPECT_EQ(nodes.received_from("nobody", 9), nullptr);
}

TEST(Nodes, WhatThisCollectorDidNotReceiveIsNotSilence) {
  Nodes nodes;
  nodes.hello_received(7, "a", "alpha", false, 0);
  nodes.extend_deadlines(20);
  EXPECT_EQ(nodes.take_newly_silent(20 + Nodes::kSilent_s), Strings{});
  EXPECT_EQ(nodes.take_newly_silent(20.1 + Nodes::kSilent_s), Strings{"alpha"});
}

TEST(Nodes, WhoIsSilentIsNotAwaited) {
  Nodes nodes;
  nodes.hello_received(7, "a", "alpha", false, 0);
  EXPECT_FALSE(nodes.any_awaited());
  nodes.at("a")->answer.sent_before(1);
  EXPECT_TRUE(nodes.any_awaited());
  EXPECT_EQ(nodes.take_newly_silent(Nodes::kSilent_s + 0.1), Strings{"alpha"});
  EXPECT_FALSE(nodes.any_awaited());
}

TEST(Nodes, TheFirstPingsComeQuickly) {
  Nodes nodes;
  nodes.hello_received(7, "a", "alpha", false, 0);
  double now_s = 1;
  for (std::uint32_t ping = 0; ping < Nodes::kQuickPings; ++ping, now_s += 0.025) {
    EXPECT_EQ(nodes.pings_due(now_s), Strings{"a"}) << ping;
    EXPECT_EQ(nodes.pings_due(now_s + 0.01), Strings{}) << ping;
  }
  EXPECT_EQ(nodes.pings_due(now_s), Strings{"a"});
  EXPECT_EQ(nodes.pings_due(now_s + 0.9), Strings{});
  EXPECT_EQ(nodes.pings_due(now_s + 1), Strings{"a"});
}

}  // namespace
}  // namespace shardscope::collector
