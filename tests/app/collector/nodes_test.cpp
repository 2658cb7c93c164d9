// The collectors of nodes: where each is reached, and when one is silent.
#include "app/collector/nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardscope::collector {
namespace {

using Greeting = Nodes::Greeting;
using Strings = std::vector<std::string>;

TEST(Nodes, OneIsReachedWhereItLastGreetedFrom) {
  Nodes nodes;
  EXPECT_EQ(nodes.at("old"), nullptr);
  EXPECT_EQ(nodes.greeted(7, "old", "alpha", false, 0), Greeting::first);
  Nodes::Node* const node = nodes.at("old");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->host, "alpha");
  EXPECT_EQ(nodes.greeted(7, "new", "alpha", false, 1), Greeting::again);
  EXPECT_EQ(nodes.at("old"), nullptr);
  EXPECT_EQ(nodes.at("new"), node) << "its clock is kept";
  nodes.clear();
  EXPECT_EQ(nodes.at("new"), nullptr);
}

/// As a peer may say it: nothing of a hello is checked against who is at its route already.
TEST(Nodes, ARouteIsThatOfWhoGreetedLastFromThereAndOnlyItsOwnerGivesItUp) {
  Nodes nodes;
  nodes.greeted(1, "x", "alpha", false, 0);
  nodes.greeted(2, "x", "beta", false, 0);
  ASSERT_NE(nodes.at("x"), nullptr);
  EXPECT_EQ(nodes.at("x")->host, "beta");
  EXPECT_EQ(nodes.pings_due(1), Strings{"x"}) << "the first is nowhere now";
  nodes.greeted(1, "y", "alpha", false, 2);
  ASSERT_NE(nodes.at("x"), nullptr) << "it was not the first's any more";
  EXPECT_EQ(nodes.at("x")->host, "beta");
  EXPECT_EQ(nodes.at("y")->host, "alpha");
  EXPECT_EQ(nodes.pings_due(3), (Strings{"y", "x"}));
  for (const std::string& route : nodes.pings_due(5)) EXPECT_NE(nodes.at(route), nullptr) << route;
}

TEST(Nodes, WhoseConnectionIsTakenByAnotherIsNotAwaited) {
  Nodes nodes;
  nodes.greeted(1, "x", "alpha", false, 0);
  nodes.at("x")->answer.sent_before(1);
  nodes.greeted(2, "x", "beta", false, 0);
  EXPECT_FALSE(nodes.any_awaited()) << "no answer of it can be told from the other's";
}

TEST(Nodes, ItsFirstHelloSaysWhetherTheClockIsTheSame) {
  Nodes nodes;
  nodes.greeted(7, "a", "alpha", true, 0);
  nodes.greeted(8, "b", "beta", false, 0);
  nodes.greeted(8, "b", "beta", true, 1);
  EXPECT_TRUE(nodes.at("a")->clock.is_same_clock());
  EXPECT_FALSE(nodes.at("b")->clock.is_same_clock());
}

TEST(Nodes, SilenceIsSaidOnceAndEndsWithAHello) {
  Nodes nodes;
  nodes.greeted(7, "a", "alpha", false, 0);
  nodes.greeted(8, "b", "beta", false, 0);
  EXPECT_EQ(nodes.received_from("b", 3), nodes.at("b"));
  EXPECT_EQ(nodes.fall_silent(Nodes::kSilent_s), Strings{});
  EXPECT_EQ(nodes.fall_silent(Nodes::kSilent_s + 0.1), Strings{"alpha"});
  EXPECT_EQ(nodes.fall_silent(Nodes::kSilent_s + 0.2), Strings{});
  EXPECT_EQ(nodes.pings_due(7), Strings{"b"}) << "who is silent is not asked";
  EXPECT_EQ(nodes.greeted(7, "a", "alpha", false, 8), Greeting::back);
  EXPECT_EQ(nodes.greeted(7, "a", "alpha", false, 9), Greeting::again);
  EXPECT_EQ(nodes.pings_due(9), (Strings{"a", "b"}));
  EXPECT_EQ(nodes.received_from("nobody", 9), nullptr);
}

TEST(Nodes, WhatThisCollectorDidNotReceiveIsNotSilence) {
  Nodes nodes;
  nodes.greeted(7, "a", "alpha", false, 0);
  nodes.forgive(20);
  EXPECT_EQ(nodes.fall_silent(20 + Nodes::kSilent_s), Strings{});
  EXPECT_EQ(nodes.fall_silent(20.1 + Nodes::kSilent_s), Strings{"alpha"});
}

TEST(Nodes, WhoIsSilentIsNotAwaited) {
  Nodes nodes;
  nodes.greeted(7, "a", "alpha", false, 0);
  EXPECT_FALSE(nodes.any_awaited());
  nodes.at("a")->answer.sent_before(1);
  EXPECT_TRUE(nodes.any_awaited());
  EXPECT_EQ(nodes.fall_silent(Nodes::kSilent_s + 0.1), Strings{"alpha"});
  EXPECT_FALSE(nodes.any_awaited());
}

TEST(Nodes, TheFirstPingsComeQuickly) {
  Nodes nodes;
  nodes.greeted(7, "a", "alpha", false, 0);
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
