// Hellos of another program, before and between the ranks': no rank is refused because of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

/// Says hello on the control port and publishes nothing that identifies a run.
class Stray {
 public:
  explicit Stray(const Collector& collector)
      : socket_(make_socket(context_, Role::rank_control)),
        publish_(make_socket(context_, Role::rank_publish)) {
    socket_.connect(endpoints_of(collector.publish_endpoint()).control);
    publish_.connect(collector.publish_endpoint());
  }
  void send_hello(const std::string& run, std::uint32_t rank, std::uint32_t world) {
    wire::Hello hello;
    hello.world = world;
    hello.host = "elsewhere";
    hello.clock_id = "another";
    hello.relayed = relayed_;
    send(socket_, run, rank, std::move(hello));
  }
  /// What follows is what a node's collector passes on.
  void send_node_hello(const std::string& run) {
    relayed_ = true;
    send(socket_, run, 0, wire::RelayHello{"node", "another", {}, {}});
  }
  void publish(const std::string& run, std::uint32_t rank, wire::Body body) {
    send(publish_, run, rank, std::move(body));
  }
  /// Until the collector has said something to it.
  bool answered() {
    return eventually([&] {
      zmq::message_t message;
      return socket_.recv(message, zmq::recv_flags::dontwait).has_value();
    });
  }

 private:
  static void send(zmq::socket_t& socket, const std::string& run, std::uint32_t rank, wire::Body body) {
    wire::Message message;
    message.header.rank = rank;
    message.header.incarnation = 4711;
    message.header.run_id = run;
    message.body = std::move(body);
    const wire::Frame frame = wire::encode(message);
    ASSERT_TRUE(eventually([&] {
      return socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait)
          .has_value();
    }));
  }
  zmq::context_t context_;
  zmq::socket_t socket_, publish_;
  bool relayed_ = false;
};

void expect_whole_run(Collector& collector, Rank& rank, std::uint32_t steps) {
  for (std::uint32_t i = 0; i < steps; ++i) rank.step(i);
  rank.settle();
  rank.finish();
  EXPECT_TRUE(rank.link->finish_received());
  const CollectorStatus status = collector.status();
  EXPECT_EQ(status.events, steps * kEventsPerStep);
  EXPECT_TRUE(status.finished) << "the world is the one of the tables";
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(store.ranks().size(), 1U);
    EXPECT_EQ(store.tables().run_id, "collector-test");
    EXPECT_EQ(store.ranks()[0].lost_messages, 0U);
  });
}

TEST(StrayHello, OfAnotherRunKeepsNoRankOut) {
  Collector collector(open_to_all());
  Stray stray(collector);
  stray.send_hello("not-this-run", 5, 64);
  ASSERT_TRUE(stray.answered()) << "it came first, and is supposed to be of the run";
  Rank rank(collector.publish_endpoint(), 0, 1);
  expect_whole_run(collector, rank, 50);
  EXPECT_EQ(rank.link->refusal(), "");
  collector.read([&](const store::Store& store) {
    EXPECT_NE(all_texts(store).find("not-this-run"), std::string::npos) << all_texts(store);
  });
}

/// The node is forgotten with its run: no rank may go on using its clock.
TEST(StrayHello, ATextOfAnotherRunsRankLeavesNothingOfThatRankOrItsNode) {
  Collector collector(open_to_all());
  Stray stray(collector);
  stray.send_node_hello("not-this-run");
  stray.send_hello("not-this-run", 5, 64);
  ASSERT_TRUE(stray.answered());
  stray.publish("not-this-run", 5, wire::Text{1, Severity::info, "a stray text"});
  stray.publish("not-this-run", 5, wire::Name{1, "a stray name"});
  std::this_thread::sleep_for(300ms);
  Rank rank(collector.publish_endpoint(), 0, 1);
  expect_whole_run(collector, rank, 50);
  EXPECT_EQ(collector.status().rejected_by["run"], 0U) << "they came while that run was supposed";
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(all_texts(store).find("a stray text"), std::string::npos) << all_texts(store);
  });
}

TEST(StrayHello, OfAnotherWorldKeepsNoRankOut) {
  for (const std::uint32_t world : {64U, 1U}) {
    Collector collector(open_to_all());
    Stray stray(collector);
    stray.send_hello("collector-test", world - 1, world);
    ASSERT_TRUE(stray.answered());
    Rank first(collector.publish_endpoint(), 0, 2), second(collector.publish_endpoint(), 1, 2);
    for (std::uint32_t i = 0; i < 20; ++i) {
      first.step(i);
      second.step(i);
    }
    for (Rank* rank : {&first, &second}) rank->settle();
    for (Rank* rank : {&first, &second}) rank->finish();
    EXPECT_EQ(collector.status().events, 2 * 20 * kEventsPerStep);
    EXPECT_TRUE(collector.status().finished);
    EXPECT_EQ(collector.status().ranks_finished, 2U);
  }
}

TEST(StrayHello, OfAnotherProcessTakesNoRanksPlace) {
  Collector collector(open_to_all());
  SettableRank rank(collector.publish_endpoint());
  ASSERT_TRUE(eventually([&] {
    rank.link.pump();
    return rank.link.collector_alive() && rank.link.unsent_events() == 0 && collector.status().messages == 1;
  }));
  Stray stray(collector);
  stray.send_hello("collector-test", 0, 1);
  ASSERT_TRUE(eventually([&] { return collector.status().rejected_by["order"] == 1; }));
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] { return !store.ranks().empty(); }));
  viewer.send({Command::Kind::set_detail, {}, Detail::phases});
  EXPECT_TRUE(eventually([&] { return rank.level() == Detail::phases; }));
}

TEST(StrayHello, ARankOfAnotherRunHearsWhyItIsNotTakenIn) {
  CollectorOptions options = open_to_all();
  options.run_id = "the-only-one";
  Collector collector(options);
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  ASSERT_TRUE(rank.until([&] { return !rank.link->refusal().empty(); }));
  for (const char* word : {"collector-test", "the-only-one", "--run-id"}) {
    EXPECT_NE(rank.link->refusal().find(word), std::string::npos) << rank.link->refusal();
  }
  EXPECT_FALSE(rank.link->collector_alive());
  EXPECT_EQ(collector.status().events, 0U);
}

}  // namespace
}  // namespace shardscope::collector
