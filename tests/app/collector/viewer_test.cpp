// A viewer against a collector: what one poll takes, what a slow one costs, a collector that starts anew.
#include "app/collector/viewer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>

#include "instrumentation/drain_pace.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

TEST(Viewer, KeepsToItsBudget) {
  Collector collector(local());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.link() == Viewer::Link::live; }));
  while (viewer.poll(store, 1s)) std::this_thread::sleep_for(20ms);
  Rank rank(collector.publish_endpoint(), 0, 1);
  for (std::uint32_t i = 0; i < 20; ++i) {
    rank.step(i);
    std::this_thread::sleep_for(60ms);  // chunks of their own
  }
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 20 * kEventsPerStep; }));
  std::this_thread::sleep_for(500ms);  // for all of it to come
  ASSERT_TRUE(eventually([&] { return viewer.poll(store, 0us) && store.event_count() > 0; }));
  EXPECT_LT(store.event_count(), 20 * kEventsPerStep) << "one item at most: the rest is still waiting";
  ASSERT_TRUE(follow(viewer, store, [&] { return store.event_count() == 20 * kEventsPerStep; }));
}

TEST(Viewer, IsCatchingUpUntilWhatHappenedBeforeIsTakenIn) {
  Collector collector(local());
  Rank rank(collector.publish_endpoint(), 0, 1);
  for (std::uint32_t i = 0; i < 10; ++i) {
    rank.step(i);
    std::this_thread::sleep_for(60ms);  // chunks of their own
  }
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 10 * kEventsPerStep; }));
  std::this_thread::sleep_for(1s);  // for it to be in the log
  Viewer late(collector.view_endpoint());
  ASSERT_TRUE(eventually([&] { return late.link() != Viewer::Link::connecting; }));
  std::this_thread::sleep_for(500ms);  // for all of it to come
  EXPECT_EQ(late.link(), Viewer::Link::catching_up) << "it has come, and nothing of it is in a store";
  store::Store store;
  while (late.link() == Viewer::Link::catching_up && store.event_count() < 10 * kEventsPerStep) {
    ASSERT_TRUE(eventually([&] { return late.poll(store, 0us); }));
  }
  EXPECT_EQ(store.event_count(), 10 * kEventsPerStep) << "live before all of it was taken";
  ASSERT_TRUE(follow(late, store, [&] { return late.link() == Viewer::Link::live; }));
  rank.step(10);
  rank.finish();
  ASSERT_TRUE(eventually([&] { return collector.status().finished; }));
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(late.link(), Viewer::Link::live) << "the run is over, but its end is not in the store";
  ASSERT_TRUE(follow(late, store, [&] { return late.link() == Viewer::Link::ended; }));
  EXPECT_EQ(store.event_count(), 11 * kEventsPerStep);
}

TEST(Viewer, ASlowViewerCostsTheCollectorNothing) {
  Collector collector(local());
  Viewer stopped(collector.view_endpoint());  // it is never polled
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
  // What the rank does not know to be received it would send to the next collector again.
  ASSERT_TRUE(rank.until([&] { return rank.link->unsent_events() == 0; }));
  collector.reset();
  ASSERT_TRUE(follow(viewer, store, [&] {
    return viewer.link() == Viewer::Link::ended || viewer.link() == Viewer::Link::lost;
  }));
  for (std::uint32_t i = 10; i < 15; ++i) rank.step(i);  // no collector: kept, but for what was on its way
  collector = std::make_unique<Collector>(local(endpoint));
  ASSERT_TRUE(eventually([&] { return collector->status().ranks_connected == 1; }));
  for (std::uint32_t i = 15; i < 20; ++i) rank.step(i);
  rank.settle();
  // The rank has gone on; the new collector knows the tables again and says what it has not seen. It may ask
  // for them only now.
  ASSERT_TRUE(follow(viewer, store, [&] {
    rank.link->pump();
    return store.has_tables() && !store.steps().empty() && store.steps().back().step == 19 &&
           !store.ranks().empty() && store.ranks()[0].lost_messages > 0;
  })) << store.event_count();
  EXPECT_LE(store.event_count(), 10 * kEventsPerStep);
  EXPECT_EQ(store.tables().model, "tiny");
  rank.finish();
  EXPECT_TRUE(rank.link->finish_received());
}

TEST(Viewer, AMessageIsOfTheRankThatSentIt) {
  Collector collector(local());
  Rank first(collector.publish_endpoint(), 0, 2), second(collector.publish_endpoint(), 1, 2);
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  second.link->post(wire::Body(wire::Text{monotonic_now_ns(), Severity::warning, "mind the gap"}));
  const auto said = [&] {
    return std::ranges::find(store.messages(), "mind the gap", &store::Message::text);
  };
  ASSERT_TRUE(follow(viewer, store, [&] {
    first.link->pump();
    second.link->pump();
    return said() != store.messages().end();
  }));
  EXPECT_EQ(said()->rank, 1U);
  EXPECT_EQ(said()->severity, Severity::warning);
}

TEST(Viewer, SeesTheEndOfARunWhoseRankWasKilled) {
  Collector collector(local());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  Rank first(collector.publish_endpoint(), 0, 2);
  {
    Rank second(collector.publish_endpoint(), 1, 2);
    for (Rank* rank : {&first, &second}) rank->step(0);
    for (Rank* rank : {&first, &second}) rank->settle();
  }
  first.finish(1, "rank 0 failed: rank 1 ended");
  ASSERT_TRUE(follow(viewer, store, [&] { return store.event_count() == 2 * kEventsPerStep; }));
  EXPECT_EQ(viewer.link(), Viewer::Link::live) << "the second may come back";
  collector.note_exit(1, 128 + SIGKILL);
  collector.note_over();
  EXPECT_TRUE(follow(viewer, store, [&] { return viewer.link() == Viewer::Link::ended; }));
  EXPECT_EQ(store.ranks()[1].exit_code, 128 + SIGKILL);
  EXPECT_EQ(store.event_count(), 2 * kEventsPerStep);
}

std::int64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// A wake-up that is not taken wakes again and again: on a busy machine too that is far more than idling
/// takes.
TEST(Viewer, RestsAfterACommandWasSent) {
  std::optional<Collector> collector(std::in_place, local());
  Viewer viewer(collector->view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.link() == Viewer::Link::live; }));
  viewer.send({Command::Kind::resume, {}, {}});
  collector.reset();  // what it costs is not the viewer's
  const std::int64_t before = cpu_ns();
  std::this_thread::sleep_for(1500ms);
  EXPECT_LT(cpu_ns() - before, 60'000'000);
}

TEST(Viewer, SetsTheDetailLevelOfEveryRank) {
  Collector collector(local());
  SettableRank rank(collector.publish_endpoint());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] {
    rank.link.pump();  // a rank sends once its connection is up
    return !store.ranks().empty() && store.ranks()[0].connected;
  }));
  Command command;
  command.kind = Command::Kind::set_detail;
  command.detail = Detail::phases;
  viewer.send(command);
  EXPECT_TRUE(eventually([&] { return rank.level() == Detail::phases; }));
}

TEST(Viewer, WithoutAViewerRanksMayPublishRarelyAndOneThatComesIsNoticedAtOnce) {
  Collector collector(local());
  std::atomic<int> look_ms{-1};
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = collector.publish_endpoint();
  options.gate = &gate;
  options.look_pause = [&](std::uint16_t milliseconds) { look_ms = milliseconds; };
  RankLink link(options, tables_of(0, 1));
  link.pump();
  ASSERT_TRUE(eventually([&] { return look_ms == DrainPace::kUnwatched.count(); })) << look_ms;
  const auto came = Clock::now();
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] { return look_ms == 0; })) << look_ms;
  EXPECT_LT(Clock::now() - came, 800ms) << "with the next ping it would be a second";
}

}  // namespace
}  // namespace shardscope::collector
