// A collector with ranks and viewers in this process, over real sockets.
#include "app/collector/collector.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <zmq.hpp>

#include "app/collector/viewer.h"
#include "app/store/recording.h"
#include "instrumentation/clock.h"
#include "instrumentation/rank_link.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {
namespace {

using namespace std::chrono_literals;
using namespace instrumentation;
using Clock = std::chrono::steady_clock;

RunTables tables_of(std::uint32_t rank, std::uint32_t world) {
  RunTables t;
  t.run_id = "collector-test";
  t.model = "tiny";
  t.rank = rank;
  t.world = world;
  t.local_world = world;
  t.stage = 3;
  t.elems = 10;
  t.modules = {{0, kNoId, "", "Root", {}, true}, {1, 0, "fc", "Linear", {0}, true}};
  t.params = {{0, "fc.weight", "fp32", {10}, 10, 5, 0, {1}, false}};
  return t;
}

Event event_of(EventKind kind, std::int64_t ns, StreamId stream = StreamId::host, std::uint32_t a = 0,
               std::uint32_t b = 0, std::uint8_t code = 0) {
  Event event;
  event.ticks = static_cast<std::uint64_t>(ns);
  event.kind = kind;
  event.stream = stream;
  event.a = a;
  event.b = b;
  event.code = code;
  return event;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return condition();
}

/// A rank without rings: hands over steps with module spans and memory events made here.
class Rank {
 public:
  Rank(const std::string& endpoint, std::uint32_t rank, std::uint32_t world, std::int64_t skew = 0)
      : skew_(skew) {
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.gate = &gate;
    options.detail = [] { return 3; };
    if (skew != 0) {
      options.clock_id = "another-host";
      options.clock.skew_ns = skew;
    }
    link = std::make_unique<RankLink>(std::move(options), tables_of(rank, world));
  }
  void step(std::uint32_t number, std::uint64_t dropped = 0) {
    std::vector<Event> events;
    std::int64_t t = monotonic_now_ns() + skew_;
    const std::int64_t begin = t;
    const auto add = [&](Event event) {
      event.ticks = static_cast<std::uint64_t>(t += 1000);
      events.push_back(event);
    };
    add(event_of(EventKind::step_begin, 0, StreamId::host, number));
    for (std::uint32_t m = 0; m < 2; ++m) {
      add(event_of(EventKind::module_begin, 0, StreamId::compute, m));
      add(event_of(EventKind::memory_alloc, 0, StreamId::host, m));
      events.back().v0 = events.back().v1 = 4096;
      add(event_of(EventKind::memory_free, 0, StreamId::host, m));
      events.back().v0 = 4096;
      add(event_of(EventKind::module_end, 0, StreamId::compute, m));
    }
    add(event_of(EventKind::step_end, 0, StreamId::host, number));
    link->push(std::move(events), dropped, begin, t, 25);
    link->pump();
  }
  /// Until the collector has taken all of it. Before it has been heard of, drain() gives up soon.
  void settle() {
    EXPECT_TRUE(until([&] { return link->collector_alive(); }));
    link->drain(10);
  }
  void finish(int code = 0, const std::string& text = "done") {
    link->post(wire::Body(wire::Finish{code, monotonic_now_ns(), 0, text}));
    EXPECT_TRUE(until([&] { return link->finish_received(); }));
  }
  /// Sends meanwhile what could not be sent yet, as a publisher's thread does.
  bool until(const std::function<bool()>& condition) {
    return eventually([&] {
      link->pump();
      return condition();
    });
  }
  GateKeeper gate;
  std::unique_ptr<RankLink> link;

 private:
  std::int64_t skew_;
};
constexpr std::uint64_t kEventsPerStep = 10;

CollectorOptions local(const std::string& listen = "tcp://127.0.0.1:0") {
  CollectorOptions options;
  options.listen = listen;
  return options;
}

/// Follows until `condition`, in a viewer's way.
bool follow(Viewer& viewer, store::Store& store, const std::function<bool()>& condition,
            std::chrono::milliseconds limit = 10s) {
  return eventually(
      [&] {
        viewer.poll(store, 5ms);
        return condition();
      },
      limit);
}

std::string all_texts(const store::Store& store) {
  std::string out;
  for (const auto& message : store.messages()) out += message.text + "\n";
  return out;
}

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
    EXPECT_EQ(a.ranks()[i].last_words, b.ranks()[i].last_words);
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
    EXPECT_EQ(late.ranks()[2].last_words, "rank 2 done");
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
  zmq::socket_t push(context, zmq::socket_type::push);
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
  zmq::socket_t push(context, zmq::socket_type::push);
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
  collector.read([&](const store::Store& store) {
    EXPECT_NE(all_texts(store).find("another"), std::string::npos) << all_texts(store);
    EXPECT_EQ(store.tables().run_id, "collector-test");
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
  EXPECT_THROW(Collector(local("nonsense")), std::runtime_error);
  CollectorOptions lease = local();
  lease.lease_s = 0;
  EXPECT_THROW(Collector{lease}, std::runtime_error);
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

TEST(Collector, SkewedClocksAreAlignedWithinTheResidual) {
  Collector collector(local());
  constexpr std::int64_t kSkew = 7'000'000'000;
  Rank straight(collector.publish_endpoint(), 0, 2), skewed(collector.publish_endpoint(), 1, 2, kSkew);
  std::this_thread::sleep_for(600ms);  // some round trips
  straight.step(0);
  skewed.step(0);
  straight.settle();
  skewed.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 2 * kEventsPerStep; }));
  ASSERT_TRUE(eventually([&] {
    std::size_t known = 0;
    collector.read([&](const store::Store& store) {
      for (const auto& row : store.ranks()) known += row.last_ns != 0;
    });
    return known == 2;
  }));
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(store.ranks()[0].clock_offset_ns, 0);
    const auto& row = store.ranks()[1];
    EXPECT_LE(std::abs(row.clock_offset_ns + kSkew), row.clock_residual_ns);
    EXPECT_LT(row.clock_residual_ns, 100'000'000);
    for (const auto& message : store.messages()) EXPECT_LT(message.at_ns, 60'000'000'000) << message.text;
    EXPECT_GT(row.clock_residual_ns, 0);
    // Both ranks' steps come out at nearly the same time.
    ASSERT_EQ(store.steps().size(), 1U);
    EXPECT_LT(store.steps()[0].end_ns - store.steps()[0].begin_ns, 1'000'000'000);
  });
}

/// A process whose clock is `clock`: emits events that carry this machine's time in v0.
int run_clocked_process(const std::string& endpoint, std::uint32_t rank, const HostClock& clock) {
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = endpoint;
  options.gate = &gate;
  options.detail = [] { return 3; };
  options.clock_id = "host-" + std::to_string(rank);
  options.clock = clock;
  RankLink link(std::move(options), tables_of(rank, 3));
  const auto end = Clock::now() + 4s;
  while (Clock::now() < end) {
    const std::int64_t now = monotonic_now_ns();
    Event event = event_of(EventKind::tokens, clock.at(now));
    event.v0 = now;
    link.push({event}, 0, clock.at(now), clock.at(now), 0);
    link.pump();
    std::this_thread::sleep_for(10ms);
  }
  link.post(wire::Body(wire::Finish{0, clock.at(monotonic_now_ns()), 0, "done"}));
  link.drain(30);
  return link.finish_received() ? 0 : 1;
}

TEST(Collector, ClocksOfProcessesThatAreSkewedAndDriftAreRecoveredWithinTheResidual) {
  const std::int64_t origin = monotonic_now_ns();
  const HostClock clocks[] = {{.skew_ns = 7'000'000'000, .drift_ppm = 80, .origin_ns = origin},
                              {.skew_ns = -3'000'000'000, .drift_ppm = -60, .origin_ns = origin},
                              {.skew_ns = 40'000'000, .drift_ppm = 0, .origin_ns = origin}};
  // Forked before the collector has threads; told where it listens.
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (std::uint32_t r = 0; r < 3; ++r) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      char endpoint[128] = {};
      if (read(ends[0], endpoint, sizeof endpoint) <= 0) _exit(2);
      _exit(run_clocked_process(endpoint, r, clocks[r]));
    }
    close(ends[0]);
    children.push_back(child);
    pipes.push_back(ends[1]);
  }
  Collector collector(local());
  const std::string endpoint = collector.publish_endpoint();
  for (const int end : pipes) {
    ASSERT_EQ(write(end, endpoint.c_str(), endpoint.size() + 1), static_cast<ssize_t>(endpoint.size() + 1));
    close(end);
  }
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  std::array<std::int64_t, 3> residual{};
  EXPECT_TRUE(follow(
      viewer, store,
      [&] {
        bool all = store.ranks().size() == 3;
        for (const auto& row : store.ranks()) {
          if (row.rank < 3) residual[row.rank] = std::max(residual[row.rank], row.clock_residual_ns);
          all &= row.finished;
        }
        return all;
      },
      60s));
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(
      follow(viewer, store, [&] { return viewer.link() == Viewer::Link::ended || store.event_count() > 0; }));
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::int64_t worst = 0;
    std::size_t events = 0;
    for (const Event& event : store.instants(r)) {
      worst =
          std::max(worst, std::abs(static_cast<std::int64_t>(event.ticks) + store.origin_ns() - event.v0));
      ++events;
    }
    EXPECT_GT(events, 100U) << "rank " << r;
    EXPECT_LE(worst, residual[r]) << "rank " << r;
    EXPECT_GT(residual[r], 0) << "rank " << r;
    // A bound that is as wide as the skew would say nothing.
    EXPECT_LT(residual[r], std::abs(clocks[r].skew_ns)) << "rank " << r;
  }
}

TEST(Viewer, WakesItsOwnerAndKeepsToItsBudget) {
  Collector collector(local());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  const auto readable = [&](int ms) {
    pollfd fd{viewer.wake_fd(), POLLIN, 0};
    return ::poll(&fd, 1, ms) == 1;
  };
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.link() == Viewer::Link::live; }));
  while (viewer.poll(store, 1s)) std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(readable(0)) << "nothing new, nothing to wake for";
  Rank rank(collector.publish_endpoint(), 0, 1);
  for (std::uint32_t i = 0; i < 20; ++i) {
    rank.step(i);
    std::this_thread::sleep_for(60ms);  // chunks of their own
  }
  rank.settle();
  ASSERT_TRUE(readable(5000));
  std::this_thread::sleep_for(500ms);
  EXPECT_TRUE(viewer.poll(store, 0us));  // one item at most
  EXPECT_TRUE(readable(0)) << "the rest is still waiting";
  ASSERT_TRUE(follow(viewer, store, [&] { return store.event_count() == 20 * kEventsPerStep; }));
}

TEST(Viewer, ASlowViewerCostsTheCollectorNothing) {
  Collector collector(local());
  Viewer stopped(collector.view_endpoint());  // nobody polls it
  Rank rank(collector.publish_endpoint(), 0, 1);
  for (std::uint32_t i = 0; i < 500; ++i) rank.step(i);
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 500 * kEventsPerStep; }));
  EXPECT_EQ(rank.link->shed(), 0U);
}

TEST(Viewer, FollowsARestartedCollectorFromItsBeginning) {
  auto collector = std::make_unique<Collector>(local());
  const std::string endpoint = collector->publish_endpoint();
  Rank rank(endpoint, 0, 1);
  Viewer viewer(endpoint);
  store::Store store;
  for (std::uint32_t i = 0; i < 10; ++i) rank.step(i);
  rank.settle();
  ASSERT_TRUE(follow(viewer, store, [&] { return store.event_count() == 10 * kEventsPerStep; }));
  collector.reset();
  ASSERT_TRUE(follow(viewer, store, [&] {
    return viewer.link() == Viewer::Link::ended || viewer.link() == Viewer::Link::lost;
  }));
  for (std::uint32_t i = 10; i < 15; ++i) rank.step(i);  // nobody there: kept, but for what was on its way
  collector = std::make_unique<Collector>(local(endpoint));
  ASSERT_TRUE(eventually([&] { return collector->status().ranks_connected == 1; }));
  for (std::uint32_t i = 15; i < 20; ++i) rank.step(i);
  rank.settle();
  // The rank has gone on; the new collector knows the tables again and says what it has not seen.
  ASSERT_TRUE(follow(viewer, store, [&] {
    return store.has_tables() && !store.steps().empty() && store.steps().back().step == 19 &&
           !store.ranks().empty() && store.ranks()[0].lost_messages > 0;
  })) << store.event_count();
  EXPECT_LE(store.event_count(), 10 * kEventsPerStep);
  EXPECT_EQ(store.tables().model, "tiny");
  rank.finish();
  EXPECT_TRUE(rank.link->finish_received());
}

TEST(Viewer, SetsTheDetailLevelOfEveryRank) {
  Collector collector(local());
  std::atomic<int> level{3};
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = collector.publish_endpoint();
  options.gate = &gate;
  options.detail = [&] { return level.load(); };
  options.set_detail = [&](Detail detail) { level = static_cast<int>(detail); };
  RankLink link(options, tables_of(0, 1));
  link.pump();
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] { return !store.ranks().empty() && store.ranks()[0].connected; }));
  Command command;
  command.kind = Command::Kind::set_detail;
  command.detail = Detail::phases;
  viewer.send(command);
  EXPECT_TRUE(eventually([&] { return level.load() == static_cast<int>(Detail::phases); }));
}

}  // namespace
}  // namespace shardscope::collector
