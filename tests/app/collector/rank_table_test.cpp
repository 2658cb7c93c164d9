// When ranks are looked at, from what is due of them; what viewers see besides the log.
#include "app/collector/rank_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/collector/gate_names.h"
#include "app/collector/published_control_state.h"

namespace shardscope::collector {
namespace {

using Due = std::vector<std::uint32_t>;

class RankTables : public testing::Test {
 protected:
  /// Connected itself, with nothing due but its ping.
  RankSession& connected(std::uint32_t rank, double ping_s) {
    RankSession& session = ranks_.session(rank);
    session.route = "route " + std::to_string(rank);
    session.row.connected = true;
    session.row_dirty = false;
    session.next_ping_s = ping_s;
    return session;
  }
  Pacing pacing_;
  RunIdentity identity_{"run"};
  RankTable ranks_{pacing_, identity_};
};

TEST_F(RankTables, ARankIsDueByTheFirstOfWhatItWaitsFor) {
  RankSession& rank = connected(3, 20);
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(19.9), Due{});
  rank.row_sent_s = 11;
  rank.row_dirty = true;
  ranks_.note_change(rank, 11);
  EXPECT_EQ(ranks_.take_due(11 + pacing_.pace().row_s), Due{3}) << "its row comes before its ping";
}

TEST_F(RankTables, WhatCouldNotBeDoneIsTriedALittleLater) {
  RankSession& rank = connected(3, 9);
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(10), Due{3});
  ranks_.serviced(rank, 10);
  EXPECT_EQ(ranks_.take_due(10.005), Due{});
  EXPECT_EQ(ranks_.take_due(10.011), Due{3});
}

TEST_F(RankTables, WhatIsPendingOfARankIsAsOldAsThePaceLetsItAndOfOneThatHasGoneNoOlderThanWithFewRanks) {
  (void)pacing_.watch(Watch::idle, 4096);
  RankSession& rank = connected(3, 1e9);
  EXPECT_EQ(ranks_.chunk_age_s(rank), kLongestIdleAge_s);
  rank.row.connected = false;
  EXPECT_EQ(ranks_.chunk_age_s(rank), kShortestIdleAge_s);
  (void)pacing_.watch(Watch::active, 4096);
  rank.row.connected = true;
  EXPECT_EQ(ranks_.chunk_age_s(rank), pace_of(Watch::active, 4096).chunk_age_s);
}

TEST_F(RankTables, WithoutAConnectionNothingIsSentToIt) {
  RankSession& rank = connected(3, 9);
  rank.route.clear();
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(1e9), Due{});
}

/// Each of these alone makes a rank due, and its time is that of nothing else.
TEST_F(RankTables, WhatWaitsForAClockForAGateForAReceiptOrForANode) {
  constexpr double kLong_s = 1e6;
  RankSession& rank = connected(3, kLong_s);
  wire::Header first;
  first.incarnation = 7;
  static_cast<void>(rank.accept(first, 10));
  rank.confirmed(10);
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(kLong_s - 1), Due{});

  wire::Batch batch;
  batch.events.resize(1);
  rank.first_message_s = 10;
  rank.add(batch, 10);
  rank.row_dirty = false;
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(10.01), Due{});
  EXPECT_EQ(ranks_.take_due(10.021), Due{3}) << "for a first estimate of its clock";
  rank.another_process(7);
  rank.clock.same_clock();
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(10 + pacing_.pace().chunk_age_s - 0.001), Due{});
  EXPECT_EQ(ranks_.take_due(10 + pacing_.pace().chunk_age_s), Due{3}) << "its chunk";
  rank.row.gate.holding = true;
  ranks_.note_change(rank, 10);
  EXPECT_EQ(ranks_.take_due(10), Due{3}) << "who holds is to be seen with all that it did";
  rank.row.gate.holding = false;
  static_cast<void>(rank.take_chunk());
  rank.row_dirty = false;

  first.sequence = 1;
  static_cast<void>(rank.accept(first, 10.5));
  ranks_.note_change(rank, 10.5);
  EXPECT_EQ(ranks_.take_due(10 + RankSession::kConfirmAfter_s - 0.01), Due{});
  EXPECT_EQ(ranks_.take_due(10 + RankSession::kConfirmAfter_s), Due{3}) << "a receipt, from the last on";
  rank.confirmed(11);

  ClockEstimator node;
  rank.node_clock = &node;
  rank.last_control_s = 10;
  rank.next_ping_s = 0;  // its node is sent pings, not it
  ranks_.note_change(rank, 11);
  EXPECT_EQ(ranks_.take_due(10 + RankTable::kSilentAfter_s), Due{});
  EXPECT_EQ(ranks_.take_due(10.02 + RankTable::kSilentAfter_s), Due{3}) << "whether its node still names it";
  rank.row.finished = true;
  ranks_.note_change(rank, 11);
  EXPECT_EQ(ranks_.take_due(1e9), Due{}) << "who has ended is not missed";
}

TEST_F(RankTables, WhoHasPublishedNothingIsForgottenWithWhatWasCountedOfIt) {
  RankSession& published = connected(1, 9);
  wire::Header first;
  first.incarnation = 7;
  static_cast<void>(published.accept(first, 10));
  ranks_.note_change(published, 10);
  ranks_.note_change(connected(2, 9), 10);
  EXPECT_EQ(ranks_.counts().connected(), 2U);
  std::vector<std::uint32_t> forgotten;
  ranks_.forget_unpublished([&](const RankSession& rank) { forgotten.push_back(rank.row.rank); });
  EXPECT_EQ(forgotten, Due{2});
  EXPECT_EQ(ranks_.known(2), nullptr);
  EXPECT_EQ(ranks_.known(1), &published);
  EXPECT_EQ(ranks_.counts().connected(), 1U);
}

TEST_F(RankTables, AReplyHasTheRowsThatHaveChangedSinceTheViewersRevision) {
  RankSession& one = connected(1, 9);
  one.revision = 5;
  one.row.pid = 77;
  one.row.gate.holding = true;
  connected(2, 9).revision = 7;
  connected(3, 9);  // nothing of it has been published yet
  const auto ranks_since = [&](std::uint64_t known) {
    wire::ViewReply reply;
    ranks_.add_states(reply, known);
    Due of;
    for (const wire::RankState& state : reply.ranks) of.push_back(state.rank);
    return of;
  };
  EXPECT_EQ(ranks_since(0), (Due{1, 2, 3})) << "of a viewer that has none yet";
  EXPECT_EQ(ranks_since(4), (Due{1, 2}));
  EXPECT_EQ(ranks_since(5), Due{2});
  EXPECT_EQ(ranks_since(7), Due{});
  wire::ViewReply reply;
  ranks_.add_states(reply, 0);
  EXPECT_TRUE(reply.ranks[0].connected);
  EXPECT_EQ(reply.ranks[0].pid, 77);
  EXPECT_TRUE(reply.ranks[0].gate.position.holding);
}

TEST(PublishedControlState, AReplyHasThePausesOfNowAndTheEndThatWasShown) {
  PublishedControlState shown;
  ControlState now;
  now.paused = true;
  now.gate = 12;
  now.lease_left_s = 3;
  now.note = "why";
  wire::ViewReply reply;
  shown.add_to(reply, now);
  EXPECT_TRUE(reply.paused);
  EXPECT_EQ(reply.gate, 12U);
  EXPECT_EQ(reply.lease_left_s, 3);
  EXPECT_EQ(reply.note, "why");
  EXPECT_FALSE(reply.finished);
  shown.show_over(true);
  shown.add_to(reply, now);
  EXPECT_TRUE(reply.finished);
}

TEST(PublishedControlState, TheRevisionGrowsWithChangesOnly) {
  PublishedControlState shown;
  const std::uint64_t before = shown.revision();
  ControlState control;
  EXPECT_EQ(shown.show(control), std::nullopt);
  EXPECT_EQ(shown.revision(), before);
  control.lease_left_s = 3;
  EXPECT_EQ(shown.show(control), std::nullopt) << "which runs down without end";
  EXPECT_EQ(shown.revision(), before);
  control.pausing = true;
  control.note = "why";
  EXPECT_EQ(shown.show(control), "why");
  EXPECT_EQ(shown.revision(), before + 1);
  control.paused = true;
  EXPECT_EQ(shown.show(control), std::nullopt) << "the note is that of before";
  EXPECT_TRUE(shown.control().paused);
  shown.show_over(true);
  EXPECT_EQ(shown.revision(), before + 3);
  EXPECT_EQ(shown.set_detail(2), -1);
  EXPECT_EQ(shown.set_detail(3), 2);
}

TEST(GateNames, AModuleIsCalledByItsPathWhereOneIsKnown) {
  GateNames names;
  using instrumentation::GateKind;
  EXPECT_EQ(names.name(GateKind::pre_forward, 1), "before the forward of module 1");
  instrumentation::RunTables tables;
  tables.modules.resize(2);
  tables.modules[1].path = "fc";
  names.learn(tables);
  tables.modules[1].path = "other";
  names.learn(tables);
  EXPECT_EQ(names.name(GateKind::pre_forward, 1), "before the forward of fc") << "as it was learned first";
  EXPECT_EQ(names.name(GateKind::post_backward, 0), "after the backward of module 0");
  EXPECT_EQ(names.name(GateKind::step, 4), "step 4");
}

}  // namespace
}  // namespace shardscope::collector
