// Collectors in a chain: one per node, and one above them that records the whole run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>

#include "app/store/recording.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

constexpr std::uint32_t kRanks = 4;

std::string recording_path(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("chain_test-" + name + "-" + std::to_string(getpid()) + ".zscope"))
      .string();
}

CollectorOptions node_below(const Collector& top) {
  CollectorOptions options = local();
  options.upstream = top.publish_endpoint();
  return options;
}

RunTables tables_on_node(std::uint32_t rank) {
  RunTables tables = tables_of(rank, kRanks);
  tables.local_world = 2;
  return tables;
}

std::unique_ptr<RankLink> link_of(const std::string& endpoint, std::uint32_t rank, GateKeeper& gate,
                                  const HostClock& clock = {}) {
  RankLinkOptions options;
  options.endpoint = endpoint;
  options.gate = &gate;
  options.detail = [] { return 3; };
  if (clock.skew_ns != 0 || clock.drift_ppm != 0) {
    options.clock = clock;
    options.clock_id = "rank-" + std::to_string(rank);
  }
  return std::make_unique<RankLink>(std::move(options), tables_on_node(rank));
}

/// The same for every collector: depends on rank and step only.
std::vector<Event> events_of(std::uint32_t rank, std::uint32_t step, std::int64_t origin) {
  std::vector<Event> events;
  std::int64_t t = origin + 1'000'000 * step + 100 * rank;
  const auto add = [&](EventKind kind, StreamId stream, std::uint32_t a) {
    events.push_back(event_of(kind, t += 137, stream, a));
  };
  add(EventKind::step_begin, StreamId::host, step);
  for (std::uint32_t m = 0; m < 40; ++m) {
    add(EventKind::module_begin, StreamId::compute, m % 2);
    add(EventKind::release_kept, StreamId::host, rank);
    add(EventKind::module_end, StreamId::compute, m % 2);
  }
  add(EventKind::step_end, StreamId::host, step);
  return events;
}

void play(const std::array<std::string, kRanks>& endpoints, std::uint32_t steps, std::int64_t origin) {
  std::array<GateKeeper, kRanks> gates;
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::uint32_t r = 0; r < kRanks; ++r) links.push_back(link_of(endpoints[r], r, gates[r]));
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const std::int64_t at = origin + 1'000'000 * step;
      links[r]->push(events_of(r, step, origin), step == 3 ? 5 : 0, at, at + 1'000'000, 0);
      links[r]->pump();
    }
  }
  for (auto& link : links) link->post(wire::Body(wire::Finish{0, origin, 0, "done"}));
  for (auto& link : links) {
    ASSERT_TRUE(eventually([&] {
      link->pump();
      return link->finish_received();
    }));
  }
}

TEST(Chain, ARecordingThroughNodesIsTheOneOfAFlatRun) {
  const std::int64_t origin = monotonic_now_ns();
  constexpr std::uint32_t kSteps = 50;
  const std::string flat_path = recording_path("flat"), chained_path = recording_path("chained");
  {
    CollectorOptions options = local();
    options.record_path = flat_path;
    Collector flat(options);
    const std::string e = flat.publish_endpoint();
    play({e, e, e, e}, kSteps, origin);
    ASSERT_TRUE(eventually([&] { return flat.status().finished; }));
  }
  {
    CollectorOptions options = local();
    options.record_path = chained_path;
    Collector top(options);
    Collector left(node_below(top)), right(node_below(top));
    const std::string a = left.publish_endpoint(), b = right.publish_endpoint();
    play({a, a, b, b}, kSteps, origin);
    ASSERT_TRUE(eventually([&] { return top.status().finished; }, 30s));
    ASSERT_TRUE(eventually([&] { return left.status().finished && right.status().finished; }));
    EXPECT_EQ(top.status().rejected, 0U);
  }
  store::RecordingInfo info;
  const store::Store flat = store::open_recording(flat_path, &info);
  const store::Store chained = store::open_recording(chained_path, &info);
  EXPECT_TRUE(info.complete && info.problems.empty());
  ASSERT_EQ(flat.ranks().size(), kRanks);
  ASSERT_EQ(chained.ranks().size(), kRanks);
  EXPECT_EQ(chained.tables().params.size(), flat.tables().params.size());
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(chained.ranks()[r].events, flat.ranks()[r].events);
    EXPECT_EQ(chained.ranks()[r].dropped, 5U);
    EXPECT_EQ(chained.ranks()[r].lost_messages, 0U);
    EXPECT_EQ(chained.ranks()[r].exit_message, "done");
    const auto x = flat.instants(r), y = chained.instants(r);
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(x[i].ticks == y[i].ticks && x[i].kind == y[i].kind && x[i].a == y[i].a) << i;
    }
    const store::LaneId lane{r, StreamId::compute};
    const auto s = flat.spans(lane, 0), t = chained.spans(lane, 0);
    ASSERT_EQ(s.size(), t.size());
    for (std::size_t i = 0; i < s.size(); ++i) {
      ASSERT_TRUE(s[i].begin_ns == t[i].begin_ns && s[i].end_ns == t[i].end_ns && s[i].a == t[i].a) << i;
    }
  }
  std::filesystem::remove(flat_path);
  std::filesystem::remove(chained_path);
}

TEST(Chain, ClocksOfRankAndNodeComposeWithinTheResidual) {
  Collector top(local());
  const std::int64_t origin = monotonic_now_ns();
  const HostClock node_clock{.skew_ns = 5'000'000'000, .drift_ppm = 40, .origin_ns = origin};
  const HostClock rank_clock{.skew_ns = -9'000'000'000, .drift_ppm = -30, .origin_ns = origin};
  CollectorOptions options = node_below(top);
  options.clock = node_clock;
  options.clock_id = "node";
  Collector node(options);
  GateKeeper gate;
  auto link = link_of(node.publish_endpoint(), 0, gate, rank_clock);
  Viewer viewer(top.view_endpoint());
  store::Store store;
  std::int64_t residual = 0;
  const auto enough = [&] {
    const std::int64_t now = monotonic_now_ns();
    Event event = event_of(EventKind::tokens, rank_clock.at(now));
    event.v0 = now;
    link->push({event}, 0, rank_clock.at(now), rank_clock.at(now), 0);
    link->pump();
    viewer.poll(store, 2ms);
    if (!store.ranks().empty()) residual = std::max(residual, store.ranks()[0].clock_residual_ns);
    return store.instants(0).size() >= 100 && residual > 0;
  };
  ASSERT_TRUE(eventually(enough, 30s)) << store.event_count();
  std::int64_t worst = 0;
  for (const Event& event : store.instants(0)) {
    worst = std::max(worst, std::abs(static_cast<std::int64_t>(event.ticks) + store.origin_ns() - event.v0));
  }
  EXPECT_LE(worst, residual);
  // A bound that is as wide as what it bounds would say nothing.
  EXPECT_LT(residual, 1'000'000'000);
}

/// A rank of another node meets one of the collector's own host within a microsecond.
TEST(Chain, CollectivesRefineTheClockOfANode) {
  Collector top(local());
  const HostClock node_clock{.skew_ns = 5'000'000'000};
  CollectorOptions options = node_below(top);
  options.clock = node_clock;
  options.clock_id = "node";
  Collector node(options);
  GateKeeper gates[2];
  std::unique_ptr<RankLink> links[2];
  for (std::uint32_t r = 0; r < 2; ++r) {
    RankLinkOptions of;
    of.endpoint = (r == 0 ? top : node).publish_endpoint();
    of.gate = &gates[r];
    of.detail = [] { return 3; };
    if (r == 1) of.clock = node_clock;
    if (r == 1) of.clock_id = "node";
    links[r] = std::make_unique<RankLink>(std::move(of), tables_of(r, 2));
  }
  std::uint32_t sequence = 0;
  store::RankRow row;
  EXPECT_TRUE(eventually(
      [&] {
        const std::int64_t now = monotonic_now_ns();
        for (std::uint32_t r = 0; r < 2; ++r) {
          const std::int64_t at = r == 0 ? now : node_clock.at(now);
          links[r]->push({event_of(EventKind::collective_begin, at, StreamId::gather, sequence),
                          event_of(EventKind::collective_entered, at + 1000, StreamId::gather, sequence)},
                         0, at, at + 1000, 25);
          links[r]->pump();
        }
        ++sequence;
        std::this_thread::sleep_for(20ms);
        top.read([&](const store::Store& store) {
          if (store.ranks().size() == 2) row = store.ranks()[1];
        });
        return row.clock_residual_ns > 0 && row.clock_residual_ns < 5000;
      },
      20s))
      << "residual " << row.clock_residual_ns;
  EXPECT_LE(std::abs(row.clock_offset_ns + node_clock.skew_ns), row.clock_residual_ns);
}

TEST(Chain, AnUpperCollectorThatStartsAnewLearnsTheRunAgain) {
  auto top = std::make_unique<Collector>(local());
  const std::string endpoint = top->publish_endpoint();
  Collector node(node_below(*top));
  GateKeeper gates[2];
  std::vector<std::unique_ptr<RankLink>> links;
  const std::int64_t origin = monotonic_now_ns();
  for (std::uint32_t r = 0; r < 2; ++r) links.push_back(link_of(node.publish_endpoint(), r, gates[r]));
  const auto step = [&](std::uint32_t number) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      links[r]->push(events_of(r, number, origin), 0, origin, origin, 0);
      links[r]->pump();
    }
  };
  for (std::uint32_t i = 0; i < 10; ++i) step(i);
  constexpr std::uint64_t kEach = 122;
  const auto until = [&](const std::function<bool()>& condition) {
    return eventually([&] {
      for (auto& link : links) link->pump();
      return condition();
    });
  };
  ASSERT_TRUE(until([&] { return top->status().events == 10 * 2 * kEach; }));
  // A node that has not received the confirmation yet sends everything again, and the next collector lacks
  // nothing.
  const std::int64_t confirmed = monotonic_now_ns() + 1'500'000'000;
  ASSERT_TRUE(until([&] { return monotonic_now_ns() > confirmed; }));
  top.reset();
  for (std::uint32_t i = 10; i < 15; ++i) step(i);
  ASSERT_TRUE(until([&] { return node.status().events == 15 * 2 * kEach; })) << "the node continues";
  top = std::make_unique<Collector>(local(endpoint));
  ASSERT_TRUE(eventually([&] { return top->status().ranks_connected == 2; }));
  for (std::uint32_t i = 15; i < 20; ++i) step(i);
  bool whole = false;
  EXPECT_TRUE(eventually(
      [&] {
        for (auto& link : links) link->pump();
        top->read([&](const store::Store& store) {
          whole = store.has_tables() && store.ranks().size() == 2 && !store.steps().empty() &&
                  store.steps().back().step == 19;
          // A rank's row is published later than its events.
          for (const store::RankRow& rank : store.ranks()) whole &= rank.events == 10 * kEach;
        });
        return whole;
      },
      20s));
  top->read([&](const store::Store& store) {
    EXPECT_EQ(store.tables().model, "tiny");
    // The tables and ten batches, by the rank's numbers; the node's numbers have the same gap.
    for (const store::RankRow& rank : store.ranks()) EXPECT_EQ(rank.lost_messages, 11U) << rank.rank;
  });
}

TEST(Chain, CommandsReachTheRanksAndOnlyFromTheTop) {
  Collector top(local());
  Collector node(node_below(top));
  std::atomic<int> level{3};
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = node.publish_endpoint();
  options.gate = &gate;
  options.detail = [&] { return level.load(); };
  options.set_detail = [&](Detail detail) { level = static_cast<int>(detail); };
  RankLink link(options, tables_on_node(0));
  Viewer below(node.view_endpoint()), above(top.view_endpoint());
  store::Store seen_below, seen_above;
  const auto connected = [&](const store::Store& store) {
    link.pump();  // a rank sends once its connection is up
    return !store.ranks().empty() && store.ranks()[0].connected;
  };
  ASSERT_TRUE(follow(below, seen_below, [&] { return connected(seen_below); }));
  ASSERT_TRUE(follow(above, seen_above, [&] { return connected(seen_above); }));
  Command command;
  command.kind = Command::Kind::set_detail;
  command.detail = Detail::steps;
  below.send(command);
  ASSERT_TRUE(eventually([&] { return node.status().rejected_by.count("right") == 1; }));
  EXPECT_EQ(level.load(), 3);
  command.detail = Detail::phases;
  above.send(command);
  EXPECT_TRUE(eventually([&] {
    link.pump();
    return level.load() == static_cast<int>(Detail::phases);
  }));
}

}  // namespace
}  // namespace shardscope::collector
