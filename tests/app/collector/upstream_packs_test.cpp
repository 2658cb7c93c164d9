// How a node's collector packs what its ranks publish, and what it sends again.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <variant>
#include <vector>

#include "app/collector/upstream.h"
#include "tests/app/collector/upstream_hop.h"

namespace shardscope::collector {
namespace {

TEST(Upstream, EventsOfRanksGoInOneMessageOfEachInterval) {
  constexpr double kEvery_s = 0.25;
  Hop hop("packed");
  RankSession one(0), other(1);
  for (RankSession* rank : {&one, &other}) {
    hop.another_process(*rank, 11 + rank->row.rank);
    rank->clock.same_clock();
    hop.first_message(*rank, 11 + rank->row.rank, kBegin_s);
  }
  hop.upstream().pump(kBegin_s + 1, kEvery_s);
  EXPECT_EQ(hop.arrived(2), (std::vector<std::uint64_t>{11, 12}));
  EXPECT_EQ(hop.packs(), 2U) << "the Hop's own and one of both ranks";
  hop.publish(one, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 1.1, kEvery_s);
  hop.publish(other, 12, 1, 1'000);
  hop.publish(one, 11, 2, 2'000);
  EXPECT_FALSE(hop.upstream().sent()) << "the interval is not over";
  EXPECT_NEAR(hop.upstream().rest_s(kBegin_s + 1.1), 0.15, 1e-6);
  hop.upstream().pump(kBegin_s + 1 + kEvery_s, kEvery_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(3), (std::vector<std::uint64_t>{12, 11, 11})) << "in turn, each rank in its order";
  EXPECT_EQ(hop.packs(), 3U);
}

TEST(Upstream, WhatIsNotEventsTakesWhatWaitsWithItAtOnce) {
  Hop hop("hurry");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  hop.upstream().pump(kBegin_s + 1, 60);
  hop.publish(rank, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 2, 60);
  EXPECT_FALSE(hop.upstream().sent());
  wire::Message end;
  end.header = {.rank = 0, .incarnation = 11, .sequence = 2, .run_id = "collector-test"};
  end.body = wire::Finish{};
  hop.upstream().published(rank, end, 0);
  hop.upstream().pump(kBegin_s + 2, 60);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(3).size(), 3U);
}

/// A rank on the node's clock, which has published its tables.
void begin_on_our_clock(Hop& hop, RankSession& rank) {
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  hop.upstream().pump(kBegin_s + 1, 60);
  ASSERT_EQ(hop.arrived(1), (std::vector<std::uint64_t>{11}));
}

TEST(Upstream, WhatWaitedOfARankGoesAsOneBatchUpToATextOrALoss) {
  Hop hop("joined");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  const std::int64_t now_ns = monotonic_now_ns();
  for (std::uint64_t i = 1; i <= 3; ++i) hop.publish(rank, 11, i, now_ns + static_cast<std::int64_t>(i));
  wire::Message text;
  text.header = {.rank = 0, .incarnation = 11, .sequence = 4, .run_id = "collector-test"};
  text.body = wire::Text{now_ns, Severity::info, "between"};
  hop.upstream().published(rank, text, 0);
  hop.publish(rank, 11, 5, now_ns + 5);
  hop.publish(rank, 11, 7, now_ns + 7, 1);
  hop.publish(rank, 11, 8, now_ns + 8);
  hop.upstream().pump(kBegin_s + 2, 60);
  const auto sent = hop.relayed(4);
  ASSERT_EQ(sent.size(), 4U);
  ASSERT_TRUE(sent[0] && sent[2] && sent[3]);
  EXPECT_EQ(sent[0]->source_last, 3U) << "three batches";
  EXPECT_FALSE(sent[1]) << "the text, in its place";
  EXPECT_EQ(sent[2]->source_last, 5U) << "what did not arrive is between this and the next";
  EXPECT_EQ(sent[3]->source_last, 8U);
  EXPECT_EQ(sent[3]->lost_total, 1U);
  EXPECT_TRUE(hop.upstream().sent());
}

/// The collector above has some of it, and knows which by the numbers of the rank's messages.
TEST(Upstream, WhatAnEarlierCollectorOfTheNodeMayHavePassedOnStaysAsItWas) {
  Hop hop("again");
  RankSession rank(0);
  const std::int64_t before_ns = monotonic_now_ns() - 1'000'000;
  begin_on_our_clock(hop, rank);
  for (std::uint64_t i = 1; i <= 3; ++i) hop.publish(rank, 11, i, before_ns);
  hop.upstream().pump(kBegin_s + 62, 60);
  const auto sent = hop.relayed(3);
  ASSERT_EQ(sent.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(sent[i]);
    EXPECT_EQ(sent[i]->source_last, i + 1);
  }
}

TEST(Upstream, EventsWaitAsLongAsTheCollectorAboveLetsThemAndNotWhenAViewerComes) {
  Hop hop("paced");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  double now_s = kBegin_s + 2;
  const auto pump = [&] { hop.upstream().pump(now_s, hop.upstream().pack_s()); };
  hop.answer(wire::Ping{1, 0, 250, 4000});
  ASSERT_TRUE(eventually([&] {
    pump();
    return hop.upstream().pack_s() == 4;
  }));
  EXPECT_FALSE(hop.upstream().watched());
  hop.publish(rank, 11, 1, monotonic_now_ns());
  pump();  // the interval begins
  hop.publish(rank, 11, 2, monotonic_now_ns());
  now_s += 3.5;
  pump();
  EXPECT_FALSE(hop.upstream().sent());
  hop.answer(wire::Ping{2, 0, 0, 0});
  ASSERT_TRUE(eventually([&] {
    pump();
    return hop.upstream().sent();
  })) << "at the same time on the clock of the pace";
  EXPECT_TRUE(hop.upstream().watched());
}

TEST(Upstream, TheTablesOfARankAreSentAgainWhole) {
  Hop hop("tables");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  wire::RankCommand ask;
  ask.kind = wire::RankCommand::Kind::resend_tables;
  hop.answer(ask);
  std::vector<wire::Body> sent;
  ASSERT_TRUE(eventually([&] {
    hop.upstream().pump(kBegin_s + 62);
    sent = hop.arrived_by_now();
    return !sent.empty();
  }));
  ASSERT_EQ(sent.size(), 1U);
  const auto* tables = std::get_if<wire::Tables>(&sent.front());
  ASSERT_NE(tables, nullptr);
  EXPECT_EQ(tables->tables, tables_of(0, kWorld));
}

/// The node names a rank that has ended until the collector above confirms that end.
TEST(Upstream, AConfirmedEndIsSaidAgainToAnotherCollectorAbove) {
  Hop hop("ends");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  wire::Message end;
  end.header = {.rank = 0, .incarnation = 11, .sequence = 1, .run_id = "collector-test"};
  end.body = wire::Finish{};
  hop.upstream().published(rank, end, 0);
  double now_s = kBegin_s + 2;
  const auto says_end = [&](bool said) {
    return eventually([&] {
      hop.upstream().pump(++now_s);
      bool node = false, ended = false;
      for (const wire::Body& body : hop.control()) {
        node |= std::holds_alternative<wire::RelayHello>(body);
        ended |= std::holds_alternative<wire::Hello>(body);
      }
      return node && ended == said;
    });
  };
  hop.answer(wire::Ping{1, 0, 0, 0}, 1);
  EXPECT_TRUE(says_end(true));
  wire::RankCommand confirm;
  confirm.kind = wire::RankCommand::Kind::finish_received;
  hop.answer(confirm, 1);
  EXPECT_TRUE(says_end(false));
  hop.answer(wire::Ping{2, 0, 0, 0}, 2);
  EXPECT_TRUE(says_end(true));
}

TEST(Upstream, WithoutAConnectionNothingIsDueByTime) {
  Hop hop("away");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.cut();
  hop.first_message(rank, 11, kBegin_s);
  hop.publish(rank, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 1, 0.25);
  EXPECT_EQ(hop.upstream().rest_s(kBegin_s + 2), kNever_s) << "else its thread takes a core";
  hop.open();
  EXPECT_EQ(hop.numbers(3)[11], (std::vector<std::uint64_t>{0, 1}));
}

TEST(Upstream, WithoutRoomForFurtherSocketsItConnectsLater) {
  Hop hop("room");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.cut_without_room();
  hop.first_message(rank, 11, kBegin_s);
  ASSERT_TRUE(eventually([&] {
    try {
      hop.open();
      return true;
    } catch (const zmq::error_t&) {  // libzmq frees sockets some time after they have been closed
      return false;
    }
  }));
  EXPECT_EQ(hop.numbers(2)[11], (std::vector<std::uint64_t>{0}));
}

/// What waits for room when the connection is cut is sent over the next one with what lay in it: all of it,
/// in its order.
TEST(Upstream, APackThatFoundNoRoomIsNeitherLostNorOutOfOrderAfterACut) {
  constexpr std::uint32_t kRanks = 8;
  constexpr std::uint64_t kBatches = 96;
  Hop hop("full", std::size_t{64} << 20);
  std::deque<RankSession> ranks;
  for (std::uint32_t i = 0; i < kRanks; ++i) {
    RankSession& rank = ranks.emplace_back(i);
    hop.another_process(rank, 11 + i);
    rank.clock.same_clock();
    hop.first_message(rank, 11 + i, kBegin_s);
  }
  for (std::uint64_t sequence = 1; sequence <= kBatches; ++sequence) {
    for (RankSession& rank : ranks) hop.publish(rank, 11 + rank.row.rank, sequence, 1'000, 0, 200);
  }
  hop.upstream().pump(kBegin_s + 1, 0.25);
  hop.publish(ranks[0], 11, kBatches + 1, 1'000);
  ASSERT_FALSE(hop.upstream().sent()) << "nothing is received above";
  EXPECT_EQ(hop.upstream().rest_s(kBegin_s + 2), kNever_s) << "the socket wakes its thread";
  hop.cut();
  hop.open();
  auto numbers = hop.numbers(1 + kRanks * (kBatches + 1) + 1);
  std::vector<std::uint64_t> all(kBatches + 1);
  std::iota(all.begin(), all.end(), 0U);
  for (std::uint32_t i = 1; i < kRanks; ++i) EXPECT_EQ(numbers[11 + i], all) << i;
  all.push_back(kBatches + 1);
  EXPECT_EQ(numbers[11], all);
}

}  // namespace
}  // namespace shardscope::collector
