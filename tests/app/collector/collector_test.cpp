// A collector with ranks and viewers in this process, over real sockets.
#include "app/collector/collector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <zmq.hpp>

#include "app/store/database.h"
#include "app/store/recording.h"
#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

/// What a store of totals knows as well.
void expect_same_totals(const store::Store& a, const store::Store& b) {
  ASSERT_TRUE(a.has_tables() && b.has_tables());
  EXPECT_EQ(a.tables().run_id, b.tables().run_id);
  EXPECT_EQ(a.event_count(), b.event_count());
  EXPECT_EQ(a.dropped_count(), b.dropped_count());
  EXPECT_EQ(a.end_ns(), b.end_ns());
  ASSERT_EQ(a.steps().size(), b.steps().size());
  for (std::size_t i = 0; i < a.steps().size(); ++i) {
    EXPECT_EQ(a.steps()[i].step, b.steps()[i].step);
    EXPECT_EQ(a.steps()[i].begin_ns, b.steps()[i].begin_ns);
    EXPECT_EQ(a.steps()[i].end_ns, b.steps()[i].end_ns);
  }
  ASSERT_EQ(a.ranks().size(), b.ranks().size());
  for (std::size_t i = 0; i < a.ranks().size(); ++i) {
    EXPECT_EQ(a.ranks()[i].rank, b.ranks()[i].rank);
    EXPECT_EQ(a.ranks()[i].events, b.ranks()[i].events);
    EXPECT_EQ(a.ranks()[i].dropped, b.ranks()[i].dropped);
    EXPECT_EQ(a.ranks()[i].finished, b.ranks()[i].finished);
    EXPECT_EQ(a.ranks()[i].exit_message, b.ranks()[i].exit_message);
  }
  const auto x = a.span_totals(), y = b.span_totals();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i].total_ns, y[i].total_ns);
}

void expect_same(const store::Store& a, const store::Store& b) {
  expect_same_totals(a, b);
  ASSERT_EQ(a.lanes(), b.lanes());
  for (const store::LaneId lane : a.lanes()) {
    ASSERT_EQ(a.depth_count(lane), b.depth_count(lane));
    for (std::uint8_t depth = 0; depth < a.depth_count(lane); ++depth) {
      const auto x = a.spans(lane, depth), y = b.spans(lane, depth);
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(x[i].begin_ns, y[i].begin_ns);
        EXPECT_EQ(x[i].end_ns, y[i].end_ns);
        EXPECT_EQ(x[i].a, y[i].a);
      }
    }
  }
}

/// The ranks of other nodes do not come here, and this run ends before that is judged
/// (StepTable::kAwaited_ns).
TEST(Collector, OfANodesShortRunTheRecordedStepsHaveEnds) {
  const std::string path = testing::TempDir() + "node_steps." + std::to_string(getpid()) + ".zscope";
  std::filesystem::remove(path);
  {
    CollectorOptions options = local();
    options.record_path = path;
    Collector collector(options);
    Rank here(collector.publish_endpoint(), 0, 2);
    for (std::uint32_t step = 0; step < 4; ++step) here.step(step);
    here.finish();
    EXPECT_TRUE(here.link->finish_received());
  }
  store::Database file(path, store::Database::Access::read);
  EXPECT_EQ(file.integer("SELECT count(*) FROM steps"), 4);
  EXPECT_EQ(file.integer("SELECT count(*) FROM steps WHERE end_ns > begin_ns"), 4);
  std::filesystem::remove(path);
}

TEST(Collector, AnEarlyALateAndARecordedViewOfARunAreTheSame) {
  const std::string path = testing::TempDir() + "collector_test." + std::to_string(getpid()) + ".zscope";
  std::filesystem::remove(path);
  store::Store early, late;
  {
    CollectorOptions options = local();
    options.record_path = path;
    Collector collector(options);
    Viewer early_viewer(collector.view_endpoint());
    std::vector<std::unique_ptr<Rank>> ranks;
    for (std::uint32_t r = 0; r < 3; ++r)
      ranks.push_back(std::make_unique<Rank>(collector.publish_endpoint(), r, 3));
    for (std::uint32_t step = 0; step < 40; ++step) {
      for (auto& rank : ranks) rank->step(step, step == 7 ? 5 : 0);
      early_viewer.poll(early, 1ms);
      std::this_thread::sleep_for(5ms);
    }
    ranks[1]->link->post(wire::Body(wire::Name{0, "gelu"}));
    ranks[2]->link->post(wire::Body(wire::Text{monotonic_now_ns(), Severity::warning, "a word"}));
    for (std::uint32_t r = 0; r < 3; ++r) ranks[r]->finish(0, "rank " + std::to_string(r) + " done");
    for (auto& rank : ranks) EXPECT_TRUE(rank->link->finish_received());
    ASSERT_TRUE(eventually([&] { return collector.status().finished; }));
    const CollectorStatus status = collector.status();
    EXPECT_EQ(status.events, 3 * 40 * kEventsPerStep);
    EXPECT_EQ(status.dropped, 15U);
    EXPECT_EQ(status.rejected, 0U);
    EXPECT_EQ(status.exit_code, 0);
    EXPECT_EQ(status.recording_error, "");
    ASSERT_TRUE(follow(early_viewer, early, [&] { return early_viewer.link() == Viewer::Link::ended; }));
    early_viewer.poll(early, 1s);
    Viewer late_viewer(collector.view_endpoint());
    ASSERT_TRUE(follow(late_viewer, late, [&] { return late_viewer.link() == Viewer::Link::ended; }));
    late_viewer.poll(late, 1s);
    expect_same(early, late);
    EXPECT_EQ(late.event_count(), 3 * 40 * kEventsPerStep);
    EXPECT_EQ(late.dropped_count(), 15U);
    EXPECT_EQ(late.steps().size(), 40U);
    EXPECT_EQ(late.name(1, 0), "gelu");
    EXPECT_NE(all_texts(late).find("a word"), std::string::npos);
    EXPECT_EQ(late.ranks()[2].exit_message, "rank 2 done");
    collector.read([&](const store::Store& own) { expect_same_totals(own, late); });
  }
  store::RecordingInfo info;
  const store::Store recorded = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete) << (info.problems.empty() ? "" : info.problems[0]);
  expect_same(recorded, late);
  std::filesystem::remove(path);
}

TEST(Collector, GarbageIsCountedIgnoredAndSaidOnce) {
  Collector collector(local());
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  rank.settle();
  zmq::context_t context;
  zmq::socket_t push =
      make_socket(context, Role::rank_publish, local_key(collector.publish_endpoint(), KeyRole::publish));
  push.connect(collector.publish_endpoint());
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    push.send(zmq::buffer(bytes), zmq::send_flags::none);
  }
  ASSERT_TRUE(eventually([&] { return collector.status().rejected == 200; })) << collector.status().rejected;
  // A replayed message and one of another run.
  Rank stranger(collector.publish_endpoint(), 0, 2);
  rank.step(1);
  ASSERT_TRUE(eventually([&] { return collector.status().rejected > 200; }));
  ASSERT_TRUE(rank.until([&] { return collector.status().events >= 2 * kEventsPerStep; }));
  collector.read([&](const store::Store& store) {
    int said = 0;
    for (const auto& message : store.messages())
      said += message.text.find("ignored a message from a rank") != std::string::npos;
    EXPECT_GE(said, 1);
    EXPECT_LE(said, 3) << all_texts(store);
  });
}

TEST(Collector, AMissingMessageIsAGapAndTheTablesAreAskedForAgain) {
  Collector collector(local());
  zmq::context_t context;
  zmq::socket_t push =
      make_socket(context, Role::rank_publish, local_key(collector.publish_endpoint(), KeyRole::publish));
  push.connect(collector.publish_endpoint());
  const auto send = [&](std::uint64_t sequence, wire::Body body) {
    wire::Message message;
    message.header.run_id = "collector-test";
    message.header.incarnation = 99;
    message.header.sequence = sequence;
    message.body = std::move(body);
    const wire::Frame frame = wire::encode(message);
    push.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  };
  const auto batch = [](std::int64_t ns) {
    wire::Batch b;
    b.events = {event_of(EventKind::step_begin, ns)};
    return b;
  };
  send(0, wire::Tables{tables_of(0, 1)});
  send(1, batch(1000));
  send(4, batch(5000));  // two are missing
  send(3, batch(4000));  // one of them comes too late: order is lost already
  ASSERT_TRUE(eventually([&] { return collector.status().events == 2 && collector.status().rejected == 1; }));
  ASSERT_TRUE(eventually([&] {
    std::uint64_t lost = 0;
    collector.read([&](const store::Store& store) {
      if (!store.ranks().empty()) lost = store.ranks()[0].lost_messages;
    });
    return lost == 2;
  }));
  ASSERT_TRUE(eventually([&] {
    bool gap = false;
    collector.read([&](const store::Store& store) { gap = !store.gaps().empty(); });
    return gap;
  }));
  collector.read([&](const store::Store& store) {
    EXPECT_NE(all_texts(store).find("2 messages of rank 0 did not arrive"), std::string::npos)
        << all_texts(store);
  });
}

TEST(Collector, AsksForTablesUntilTheyComeAndNotWithEveryMessage) {
  Collector collector(local());
  zmq::context_t context;
  const auto key = local_key(collector.publish_endpoint(), KeyRole::publish);
  zmq::socket_t push = make_socket(context, Role::rank_publish, key),
                control = make_socket(context, Role::rank_control, key);
  push.connect(endpoints_of(collector.publish_endpoint()).publish);
  control.connect(endpoints_of(collector.publish_endpoint()).control);
  const auto send = [](zmq::socket_t& socket, std::uint64_t sequence, wire::Body body) {
    const wire::Frame frame = wire::encode({{0, 99, sequence, "collector-test"}, std::move(body)});
    ASSERT_TRUE(socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none));
  };
  std::size_t asked = 0;
  const auto hear = [&] {
    zmq::message_t message;
    while (control.recv(message, zmq::recv_flags::dontwait)) {
      const wire::Decoded decoded =
          wire::decode(message.data(), message.size(), wire::From::collector_control);
      const auto* command =
          decoded.message ? std::get_if<wire::RankCommand>(&decoded.message->body) : nullptr;
      asked += command != nullptr && command->kind == wire::RankCommand::Kind::resend_tables;
    }
    return asked;
  };
  const auto begin = Clock::now();
  send(control, 0, wire::Hello{1, 0, "elsewhere", "its-clock", false});
  wire::Batch batch;
  batch.events = {event_of(EventKind::step_begin, monotonic_now_ns())};
  std::uint64_t sequence = 0;
  constexpr std::uint64_t kMany = 200;
  while (sequence < kMany) send(push, sequence++, batch);
  ASSERT_TRUE(eventually([&] { return hear() > 0; }));
  const std::size_t before = asked;
  ASSERT_TRUE(eventually([&] {
    send(push, sequence++, batch);
    return hear() > before;
  })) << "they have not come";
  // Half a second apart, and one more for the first.
  EXPECT_LE(static_cast<double>(asked),
            2 + std::chrono::duration<double>(Clock::now() - begin).count() / 0.5);
  send(push, sequence++, wire::Tables{tables_of(0, 1)});
  ASSERT_TRUE(eventually([&] { return collector.status().messages == sequence; }));
  static_cast<void>(hear());
  const std::size_t when_they_came = asked;
  const auto end = Clock::now() + 700ms;
  while (Clock::now() < end) {
    send(push, sequence++, batch);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LE(hear(), when_they_came + 1) << "one may have been on its way";
}

TEST(Collector, RanksOfAnotherRunAreTurnedAway) {
  Collector collector(local());
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == kEventsPerStep; }));
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = collector.publish_endpoint();
  options.gate = &gate;
  RunTables other = tables_of(0, 1);
  other.run_id = "another";
  RankLink link(options, other);
  ASSERT_TRUE(eventually([&] {
    link.pump();
    return collector.status().rejected > 0;
  }));
  // Counted at once; the text goes by way of the recorder.
  EXPECT_TRUE(eventually([&] {
    bool said = false;
    collector.read(
        [&](const store::Store& store) { said = all_texts(store).find("another") != std::string::npos; });
    return said;
  }));
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(store.tables().run_id, "collector-test") << all_texts(store);
  });
}

TEST(Collector, AnOccupiedPortAndARemoteAddressAreExplained) {
  Collector first(local());
  try {
    Collector second(local(first.publish_endpoint()));
    FAIL() << "two collectors on one port";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("in use"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(first.publish_endpoint()), std::string::npos) << error.what();
  }
  EXPECT_THROW(Collector(local("tcp://0.0.0.0:45711")), std::runtime_error);
  EXPECT_THROW(Collector(local("implausible")), std::runtime_error);
  CollectorOptions lease = local();
  for (const double seconds : {0.0, 2 * instrumentation::wire::kMaxLeaseS}) {
    lease.lease_s = seconds;
    EXPECT_THROW(Collector{lease}, std::runtime_error) << seconds;
  }
}

TEST(Collector, AFailedRankIsReportedWithItsWords) {
  Collector collector(local());
  Rank a(collector.publish_endpoint(), 0, 2), b(collector.publish_endpoint(), 1, 2);
  a.step(0);
  b.step(0);
  b.finish(3, "out of memory: 1 GiB asked for");
  a.finish(1, "another rank failed");
  ASSERT_TRUE(eventually([&] { return collector.status().finished; }));
  EXPECT_EQ(collector.status().exit_code, 3);
  EXPECT_EQ(collector.status().failure, "rank 1: out of memory: 1 GiB asked for");
}

}  // namespace
}  // namespace shardscope::collector
