// A chain of collectors when things go wrong: losses on either hop, ranks that are not there, processes that
// come again and again, a collector above that takes nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "app/collector/nodes.h"
#include "app/collector/upstream.h"
#include "tests/app/collector/chain_parts.h"

namespace shardscope::collector {
namespace {

/// Messages that the top counts as lost: all, and those between collectors.
std::pair<std::uint64_t, std::uint64_t> lost_at(const Collector& top) {
  std::pair<std::uint64_t, std::uint64_t> out;
  top.read([&](const store::Store& store) {
    for (const store::Gap& gap : store.gaps()) {
      out.first += gap.messages;
      out.second += gap.messages_between;
    }
  });
  return out;
}

TEST(ChainFaults, LossesAreCountedOnTheHopWhereTheyHappened) {
  using Lost = std::pair<std::uint64_t, std::uint64_t>;
  {
    Collector top(local());
    Collector node(node_of(top.publish_endpoint()));
    Raw rank(node.publish_endpoint(), 7);
    rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
    rank.publish(0, wire::Tables{two_ranks(0)});
    rank.publish(1, batch_of(0));
    rank.publish(4, batch_of(1));
    EXPECT_TRUE(eventually([&] { return lost_at(top) == Lost(2, 0); })) << "two between rank and node";
    EXPECT_EQ(top.status().events, 2 * kStepEvents);
  }
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  node.control(wire::RelayHello{"node", clock_identity(), {}, {}});
  node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true});
  EXPECT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  node.publish(0, wire::Tables{two_ranks(0)});
  wire::Batch batch = batch_of(0);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 0, .source_last = 1};
  node.publish(1, batch);
  batch = batch_of(1);
  // One message of the rank did not reach the node, three of the node's did not reach the top.
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 2, .source_last = 6, .lost_total = 1};
  node.publish(5, batch);
  EXPECT_TRUE(eventually([&] { return lost_at(top) == Lost(4, 3); }))
      << lost_at(top).first << " " << lost_at(top).second;
}

/// What a node says for its ranks stands for what each would say, and only for those that it names.
TEST(ChainFaults, ARankIsThereWhileItsNodeSaysSo) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const auto send_hello = [&] { node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}}); };
  send_hello();
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true}, rank);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 2; }));
  EXPECT_TRUE(eventually(
      [&] {
        send_hello();
        return top.status().ranks_connected == 1;
      },
      20s))
      << "rank 1 sends nothing, and its node does not list it";
  for (int i = 0; i < 20; ++i) {
    send_hello();
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(top.status().ranks_connected, 1U);
}

/// [Note: what is sent twice]: the receipt may be what was cut off.
TEST(ChainFaults, ANodeThatMissedAReceiptGetsItForWhatItSendsAgain) {
  Collector top(local());
  const auto receipt_after_sending = [&] {
    Raw node(top.publish_endpoint(), 9);
    EXPECT_TRUE(eventually([&] {
      node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}});
      node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true});
      return top.status().ranks_connected == 1;
    }));
    node.publish(0, wire::Tables{tables_of(0, 1)});
    for (std::uint32_t i = 1; i < 4; ++i) node.publish(i, batch_of(i));
    std::uint64_t next = 0;
    EXPECT_TRUE(eventually([&] {
      for (const wire::Body& body : node.received()) {
        if (const auto* receipt = std::get_if<wire::Received>(&body)) next = receipt->next;
      }
      return next == 4;
    })) << "confirmed up to message "
        << next;
  };
  receipt_after_sending();
  receipt_after_sending();
  EXPECT_EQ(top.status().repeated, 4U);
  EXPECT_EQ(top.status().rejected, 0U);
}

TEST(ChainFaults, APeerWhoseHellosNameEverAnotherNodeIsOneNode) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  for (std::uint64_t process = 100; process < 300; ++process)
    node.control(wire::RelayHello{"node", clock_identity(), {}, {}}, 0, process);
  node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true});
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  node.publish(0, wire::Tables{tables_of(0, 1)});
  std::this_thread::sleep_for(std::chrono::duration<double>(Nodes::kSilent_s + 1));
  top.read([](const store::Store& store) {
    const auto silent = std::ranges::count_if(store.messages(), [](const store::Message& message) {
      return message.text.find("the collector of node node has been silent") != std::string::npos;
    });
    EXPECT_EQ(silent, 1);
  });
}

/// What was no batch the first one passed on without the rank's number of it.
TEST(ChainFaults, WhatAnotherCollectorOfANodePassesOnAgainComesOnceAndALossIsSaidToBeABound) {
  Collector top(local());
  const wire::Text twice{1'000'000, Severity::info, "said twice"};
  const auto begin = [&](Raw& node, std::uint64_t process) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}}, 0, process);
    node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, process);
    node.publish(0, wire::Tables{tables_of(0, 1)}, process);
  };
  Raw first(top.publish_endpoint(), 9);
  begin(first, 9);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  wire::Batch batch = batch_of(0);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 0, .source_last = 1};
  first.publish(1, batch);
  first.publish(2, twice);  // the rank's message 2
  ASSERT_TRUE(eventually([&] { return top.status().messages == 3; }));
  Raw second(top.publish_endpoint(), 10);
  begin(second, 10);
  second.publish(1, twice);
  second.publish(2, wire::Text{1'000'001, Severity::info, "said twice"});
  batch = batch_of(1);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 5, .source_last = 5};
  second.publish(3, batch);
  ASSERT_TRUE(eventually([&] { return top.status().events == 2 * kStepEvents; }));
  EXPECT_EQ(top.status().repeated, 1U);
  EXPECT_TRUE(eventually([&] { return lost_at(top).first == 3; })) << "messages 2 to 4, of which 2 has come";
  top.read([](const store::Store& store) {
    const std::string texts = all_texts(store);
    EXPECT_NE(texts.find("3 messages of rank 0 at most"), std::string::npos) << texts;
    const auto said = std::ranges::count_if(
        store.messages(), [](const store::Message& message) { return message.text == "said twice"; });
    EXPECT_EQ(said, 2) << "another time is another text";
  });
}

/// A node's collector says the rank's number of all that it passes on.
TEST(ChainFaults, WhatWasLostWithACollectorOfANodeIsCountedExactlyWhereItNumbersWhatIsNoBatch) {
  Collector top(local());
  const auto begin = [&](Raw& node, std::uint64_t process) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}}, 0, process);
    node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, process);
  };
  const wire::Text text{1'000'000, Severity::info, "said twice"};
  Raw first(top.publish_endpoint(), 9);
  begin(first, 9);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  first.publish(0, wire::Tables{tables_of(0, 1)}, 9, {7, 1});
  wire::Batch batch = batch_of(0);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 0, .source_last = 1};
  first.publish(1, batch);
  first.publish(2, text, 9, {7, 3});  // the rank's message 2; 3 and 4 go with this collector
  ASSERT_TRUE(eventually([&] { return top.status().messages == 3; }));
  Raw second(top.publish_endpoint(), 10);
  begin(second, 10);
  second.publish(0, wire::Text{2'000'000, Severity::info, "the first of the next one"}, 10, {7, 6});
  batch = batch_of(1);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 5, .source_last = 6};
  second.publish(1, batch);
  ASSERT_TRUE(eventually([&] { return top.status().events == 2 * kStepEvents; }));
  EXPECT_TRUE(eventually([&] { return lost_at(top).first == 2; })) << lost_at(top).first;
  EXPECT_EQ(top.status().repeated, 0U);
  Raw third(top.publish_endpoint(), 11);
  begin(third, 11);
  third.publish(0, wire::Text{2'000'009, Severity::info, "the first of the next one"}, 11, {7, 6});
  EXPECT_TRUE(eventually([&] { return top.status().repeated == 1; })) << "by its number, whatever its time";
  // The rank's message 7 did not reach the third one, and its next batch counts that.
  third.publish(1, wire::Text{2'000'010, Severity::info, "after a gap"}, 11, {7, 9});
  batch = batch_of(2);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 5, .source_last = 9, .lost_total = 1};
  third.publish(2, batch);
  ASSERT_TRUE(eventually([&] { return top.status().events == 3 * kStepEvents; }));
  EXPECT_TRUE(eventually([&] { return lost_at(top).first == 3; })) << lost_at(top).first;
  top.read([](const store::Store& store) {
    const std::string texts = all_texts(store);
    EXPECT_NE(texts.find("2 messages of rank 0 did not arrive before another collector"), std::string::npos)
        << texts;
  });
}

/// Hellos come over another connection.
TEST(ChainFaults, WhatCameBeforeTheNodesHelloIsNotLost) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const wire::Text text{1'000'000, Severity::info, "said"};
  node.publish(0, wire::Tables{tables_of(0, 1)}, 9, {7, 1});
  node.publish(1, text, 9, {7, 2});
  ASSERT_TRUE(eventually([&] { return top.status().messages == 2; }));
  node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}});
  node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true});
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  node.publish(2, text, 9, {7, 3});
  wire::Batch batch = batch_of(0);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 0, .source_last = 3};
  node.publish(3, batch);
  const auto recorded = [&] {
    std::uint64_t events = 0;
    top.read([&](const store::Store& store) { events = store.event_count(); });
    return events;
  };
  ASSERT_TRUE(eventually([&] { return recorded() == kStepEvents; }));
  EXPECT_EQ(lost_at(top).first, 0U);
}

/// Whichever of its ranks the collector above had something to say to.
TEST(ChainFaults, WithTheConnectionOfANodeAllItsRanksAreLost) {
  Collector top(local());
  std::optional<Raw> node(std::in_place, top.publish_endpoint(), 9);
  node->control(wire::RelayHello{"node", clock_identity(), {{0, 2}}, {}});
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    node->control(wire::Hello{2, 0, "elsewhere", clock_identity(), true}, rank);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 2; }));
  node->publish(0, wire::Tables{two_ranks(0)});
  ASSERT_TRUE(eventually([&] {
    return std::ranges::any_of(node->received(), [](const wire::Body& body) {
      return std::holds_alternative<wire::Received>(body);
    });
  }));
  node->publish(1, batch_of(0));  // the next receipt is due a second after the first
  ASSERT_TRUE(eventually([&] { return top.status().messages == 2; }));
  node.reset();
  EXPECT_TRUE(eventually([&] { return top.status().ranks_connected == 0; }, 4s))
      << top.status().ranks_connected << " would be there for as long as it takes to be silent";
}

TEST(ChainFaults, ARankThatComesBackAgainAndAgainIsCountedWhereItCannotBeKept) {
  constexpr std::uint64_t kProcesses = 3 * Upstream::kMostReplaced;
  const std::string above = "ipc://" + testing::TempDir() + "above_" + std::to_string(getpid());
  Collector node(node_of(above));  // which is not there yet
  {
    std::uint64_t process = 0;
    for (; process < kProcesses; ++process) {
      Raw rank(node.publish_endpoint(), 100 + process);
      rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
      rank.publish(0, wire::Tables{two_ranks(0)});
      rank.publish(1, batch_of(0));
      ASSERT_TRUE(eventually([&] { return node.status().events == (process + 1) * kStepEvents; }));
    }
  }
  const std::uint64_t abandoned = (kProcesses - 1 - Upstream::kMostReplaced) * kStepEvents;
  EXPECT_TRUE(eventually([&] { return node.status().shed_upstream == abandoned; }))
      << node.status().shed_upstream << ", not " << abandoned;
  CollectorOptions options = local();
  options.listen = above;
  Collector top(options);
  EXPECT_TRUE(eventually([&] { return top.status().events == kProcesses * kStepEvents - abandoned; }, 20s))
      << top.status().events;
  const auto counted = [&] {
    std::uint64_t events = 0;
    top.read([&](const store::Store& store) {
      for (const store::Gap& gap : store.gaps()) events += gap.events;
    });
    return events;
  };
  EXPECT_TRUE(eventually([&] { return counted() == abandoned; })) << counted() << ", not " << abandoned;
  top.read([&](const store::Store& store) {
    EXPECT_NE(all_texts(store).find("were discarded by its node's collector"), std::string::npos);
  });
}

TEST(ChainFaults, ANodeKeepsStepsAndWatermarksWhenTheCollectorAboveTakesNothing) {
  CollectorOptions options = node_of("tcp://127.0.0.1:1");  // where no program listens
  options.intake_bytes = 1U << 20;
  options.linger_s = 0;
  Collector node(options);
  GateKeeper gate;
  auto link = link_of(node.publish_endpoint(), 0, gate);
  constexpr std::uint32_t kSteps = 2000;
  for (std::uint32_t step = 0; step < kSteps; ++step) push(*link, step);
  // Far more than its part of the bound: modules are shed, what is left of 2,000 steps is not, and when that
  // is over the bound too the rank has to wait.
  EXPECT_TRUE(eventually([&] {
    link->pump();
    return node.status().shed_upstream > 0;
  }));
  std::uint64_t events = 0;
  EXPECT_TRUE(eventually([&] {
    link->pump();
    const std::uint64_t now = node.status().events;
    return std::exchange(events, now) == now && link->queued_bytes() > 0;
  })) << "it receives no more than it can keep";
  EXPECT_LE(node.status().shed_upstream, node.status().events / kStepEvents * (kStepEvents - 2));
  EXPECT_LT(node.status().events, kSteps * kStepEvents);
}

}  // namespace
}  // namespace shardscope::collector
