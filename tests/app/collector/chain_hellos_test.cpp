// What the ranks of nodes cost the collector above while they say nothing new, and what mends a hello that it
// has not got.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "app/collector/hello_sum.h"
#include "app/collector/nodes.h"
#include "tests/app/collector/chain_parts.h"

namespace shardscope::collector {
namespace {

constexpr std::uint32_t kRanksOfNode = 32;

/// Each rank says hello and its place once a second, twelve times here: of 64 ranks that are 1,536 messages.
TEST(ChainHellos, WhatRanksSayAgainCostsTheTopNothing) {
  Collector top(local());
  std::vector<std::unique_ptr<Collector>> nodes;
  std::vector<GateKeeper> gates(2 * kRanksOfNode);
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::uint32_t node = 0; node < 2; ++node) {
    nodes.push_back(std::make_unique<Collector>(node_of(top.publish_endpoint())));
    for (std::uint32_t i = 0; i < kRanksOfNode; ++i) {
      const std::uint32_t rank = node * kRanksOfNode + i;
      RunTables tables = tables_of(rank, 2 * kRanksOfNode);
      tables.local_world = kRanksOfNode;
      RankLinkOptions options;
      options.endpoint = nodes.back()->publish_endpoint();
      options.gate = &gates[rank];
      options.detail = [] { return 3; };
      links.push_back(std::make_unique<RankLink>(std::move(options), std::move(tables)));
    }
  }
  const auto pump_for = [&](std::chrono::milliseconds time) {
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
      for (auto& link : links) link->pump();
      std::this_thread::sleep_for(20ms);
    }
  };
  ASSERT_TRUE(eventually([&] {
    pump_for(20ms);
    return top.status().ranks_connected == 2 * kRanksOfNode;
  })) << top.status().ranks_connected;
  pump_for(4s);  // the first pings of a node are many
  const auto begin = Clock::now();
  const std::uint64_t before = top.status().control;
  const std::uint64_t said = nodes[0]->status().control + nodes[1]->status().control;
  pump_for(12s);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  // Of each node two hellos and an answer to a ping a second.
  EXPECT_LE(static_cast<double>(top.status().control - before), 2 * 3 * (seconds + 2));
  EXPECT_GE(nodes[0]->status().control + nodes[1]->status().control - said, 1000U) << "the ranks did speak";
  EXPECT_EQ(top.status().ranks_connected, 2 * kRanksOfNode) << "they are there by what their nodes say";
  EXPECT_EQ(top.status().rejected, 0U);
}

/// Pings say it within a second; the top takes nothing more of the node meanwhile.
TEST(ChainHellos, TheTopSaysWhomItKnowsOfTheRanksThatANodeNames) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  constexpr std::uint64_t kProcess = 70;
  const auto send_hello = [&](std::uint64_t sum) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 2}}, {}, sum});
  };
  const auto known = [&] {
    std::optional<std::uint64_t> last;
    for (const wire::Body& body : node.received()) {
      if (const auto* ping = std::get_if<wire::Ping>(&body)) last = ping->known;
    }
    return last;
  };
  const auto comes_to_know = [&](std::uint64_t sum) {
    return eventually([&] {
      send_hello(sum);
      return known() == sum;
    });
  };
  const auto hello = [&](std::uint32_t rank, std::uint64_t process) {
    node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true}, rank, process);
  };
  const std::uint64_t both = hello_sum(0, kProcess) + hello_sum(1, kProcess);
  send_hello(both);
  hello(0, kProcess);
  ASSERT_TRUE(eventually([&] {
    send_hello(both);
    return known() == hello_sum(0, kProcess);
  })) << "the other's hello was lost";
  hello(1, kProcess);
  EXPECT_TRUE(comes_to_know(both));
  hello(1, kProcess + 1);
  EXPECT_TRUE(comes_to_know(hello_sum(0, kProcess) + hello_sum(1, kProcess + 1))) << "it was started again";
}

/// The node goes on saying the same of its ranks, but over another connection, where none of them has
/// sent its hello.
TEST(ChainHellos, OverAnotherConnectionNoRankIsKnownBeforeItsHello) {
  Collector top(local());
  const std::uint64_t sum = hello_sum(0, 70);
  const auto send_hello = [&](Raw& node) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}, sum}, 0, 9);
  };
  const auto known = [](Raw& node) {
    std::optional<std::uint64_t> last;
    for (const wire::Body& body : node.received()) {
      if (const auto* ping = std::get_if<wire::Ping>(&body)) last = ping->known;
    }
    return last;
  };
  Raw first(top.publish_endpoint(), 9), second(top.publish_endpoint(), 9);
  send_hello(first);
  first.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, 70);
  ASSERT_TRUE(eventually([&] {
    send_hello(first);
    return known(first) == sum;
  }));
  // Again and again: a hello over the first connection may still be on its way.
  EXPECT_TRUE(eventually([&] {
    send_hello(second);
    return known(second) == 0U;
  })) << "its rank is reached over the first";
  second.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, 70);
  EXPECT_TRUE(eventually([&] {
    send_hello(second);
    return known(second) == sum;
  }));
  EXPECT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
}

/// A node whose collector stalls names none of them: its ranks are missed although nothing of them is
/// due.
TEST(ChainHellos, RanksOfANodeThatNamesThemNoMoreAreMissed) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const std::uint64_t sum = hello_sum(0, 70);
  const auto send_hello = [&] {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}, sum});
  };
  send_hello();
  node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, 70);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  for (const auto end = Clock::now() + std::chrono::seconds(8); Clock::now() < end;) {
    send_hello();
    std::this_thread::sleep_for(100ms);
    ASSERT_EQ(top.status().ranks_connected, 1U) << "as long as it is named";
  }
  EXPECT_TRUE(eventually([&] { return top.status().ranks_connected == 0; }, 20s));
}

}  // namespace
}  // namespace shardscope::collector
