// When the collector's event loop does what comes by time, and what is kept in mind of a collector above.
#include "app/collector/pacing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "app/collector/hello_agreement.h"
#include "app/collector/hello_sum.h"
#include "app/collector/node_hello.h"
#include "app/collector/relay_progress.h"
#include "app/collector/repeated_messages.h"

namespace shardscope::collector {
namespace {

TEST(Pacing, ATaskIsDueOncePerInterval) {
  Pacing pacing;
  EXPECT_TRUE(pacing.commit_due(10));
  EXPECT_FALSE(pacing.commit_due(10.25));
  EXPECT_TRUE(pacing.liveness_due(10.25)) << "each has an interval of its own";
  EXPECT_FALSE(pacing.liveness_due(10.375));
  EXPECT_TRUE(pacing.commit_due(10 + Pacing::kCommitEvery_s));
  EXPECT_FALSE(pacing.commit_due(10 + Pacing::kCommitEvery_s));
}

TEST(Pacing, NoWaitIsLongerThanUntilTheNextCommit) {
  Pacing pacing;
  EXPECT_TRUE(pacing.commit_due(10));
  EXPECT_TRUE(pacing.watch(Watch::idle, 4));
  EXPECT_FALSE(pacing.watch(Watch::idle, 4));
  EXPECT_EQ(pacing.pace().iteration_s, pace_of(Watch::idle, 4).iteration_s);
  EXPECT_EQ(pacing.rest_s(10, false), pacing.pace().iteration_s);
  EXPECT_DOUBLE_EQ(pacing.rest_s(10.375, false), 0.125);
  EXPECT_EQ(pacing.rest_s(10, true), pace_of(Watch::active, 0).iteration_s);
  EXPECT_TRUE(pacing.watch(Watch::active, 4));
}

TEST(Pacing, TheFirstTurnHasNotStalled) {
  Pacing pacing;
  EXPECT_EQ(pacing.stalled_s(1000), 0);
  EXPECT_EQ(pacing.stalled_s(1001.5), 0);
  EXPECT_EQ(pacing.stalled_s(1001.5 + Pacing::kStall_s), Pacing::kStall_s);
  EXPECT_EQ(pacing.stalled_s(1004), 0) << "it is reported once";
}

TEST(Pacing, RoundsAreRarerTheMoreRanksThereAreAndAViewerThatComesEndsTheWait) {
  Pacing pacing;
  EXPECT_TRUE(pacing.round_due(10, false));
  pacing.round_begun(10, 1'000'000);
  EXPECT_FALSE(pacing.round_due(10.04, false));
  EXPECT_FALSE(pacing.round_due(10.04, true)) << "others are there already";
  EXPECT_TRUE(pacing.round_due(10.06, false));
  (void)pacing.watch(Watch::idle, 1);
  EXPECT_TRUE(pacing.round_due(10.04, true));
  pacing.round_begun(20, 1);
  EXPECT_FALSE(pacing.round_due(20.0005, false));
  EXPECT_TRUE(pacing.round_due(20.002, false));
}

TEST(Pacing, WithoutAViewerRoundsOverThousandsOfRanksAreRarerStill) {
  Pacing pacing;
  (void)pacing.watch(Watch::idle, 4096);
  pacing.round_begun(10, 4096);
  EXPECT_FALSE(pacing.round_due(10.19, false));
  EXPECT_TRUE(pacing.round_due(10.21, false));
  EXPECT_TRUE(pacing.round_due(10.01, true)) << "a new viewer is noticed at once";
  (void)pacing.watch(Watch::active, 4096);
  pacing.round_begun(20, 4096);
  EXPECT_TRUE(pacing.round_due(20.06, false));
}

/// A run of 0.3 s: with a hello every half second its node would be named once, before the collector above
/// takes messages of its run.
TEST(NodeHello, ARunOfLessThanHalfASecondIsNamedAgainUntilTheCollectorAbovePings) {
  NodeHello node;
  int hellos = 0;
  for (int ms = 0; ms < 300; ++ms) {
    if (!node.due(10 + ms * 1e-3)) continue;
    ++hellos;
    node.hello_sent(true);
  }
  EXPECT_GE(hellos, 3);
  EXPECT_LE(hellos, 5) << "the intervals double";
  EXPECT_FALSE(node.known());
  EXPECT_TRUE(node.pinged(7, 10.3));
  EXPECT_TRUE(node.known());
  hellos = 0;
  for (int ms = 300; ms < 2300; ++ms) hellos += node.due(10 + ms * 1e-3) ? 1 : 0;
  EXPECT_LE(hellos, 5) << "one each half second, once it is known";
  EXPECT_GE(hellos, 4);
}

TEST(NodeHello, ANodeIsNamedOnceItsConnectionHasTakenAHello) {
  NodeHello node;
  EXPECT_TRUE(node.due(10));
  node.hello_sent(false);
  EXPECT_FALSE(node.named());
  EXPECT_FALSE(node.due(10 + NodeHello::kFirst_s)) << "the one that was just tried";
  EXPECT_TRUE(node.due(10 + 2 * NodeHello::kFirst_s));
  node.hello_sent(true);
  node.hello_sent(false);
  EXPECT_TRUE(node.named());
  node.begin_anew();
  EXPECT_FALSE(node.named()) << "over another connection nothing has been sent";
  EXPECT_TRUE(node.due(10 + 2 * NodeHello::kFirst_s)) << "and at once";
}

TEST(NodeHello, AnotherCollectorAboveOrOneThatWasSilentGetsEverythingAgain) {
  NodeHello node;
  EXPECT_TRUE(node.pinged(7, 10));
  EXPECT_FALSE(node.pinged(7, 11));
  EXPECT_TRUE(node.pinged(8, 12));
  EXPECT_FALSE(node.pinged(8, 12 + NodeHello::kInterrupted_s));
  EXPECT_TRUE(node.pinged(8, 12.5 + 2 * NodeHello::kInterrupted_s));
  node.begin_anew();
  EXPECT_FALSE(node.known());
  EXPECT_TRUE(node.pinged(8, 19)) << "over another connection";
}

TEST(RelayProgress, OnlyTheLastPauseOfARankIsAnsweredAbove) {
  RelayProgress relayed;
  EXPECT_EQ(relayed.pause_answered(3, 1), std::nullopt);
  relayed.pause_passed_on(3, 1, 101);
  relayed.pause_passed_on(4, 2, 101);
  relayed.pause_passed_on(3, 3, 102);
  EXPECT_EQ(relayed.pause_answered(3, 1), std::nullopt);
  EXPECT_EQ(relayed.pause_answered(3, 3), 102U);
  EXPECT_EQ(relayed.pause_answered(4, 2), 101U);
}

TEST(RelayProgress, TheEndWaitsForTheLastWordOfTheCollectorAboveAndNotForEver) {
  RelayProgress relayed;
  EXPECT_FALSE(relayed.over(false, true, true, true, 10, 5)) << "a rank continues";
  EXPECT_TRUE(relayed.over(true, true, true, true, 11, 5));
  RelayProgress unanswered;
  EXPECT_FALSE(unanswered.over(true, false, true, false, 10, 5)) << "not all has been sent";
  EXPECT_FALSE(unanswered.over(true, true, true, false, 15, 5));
  EXPECT_TRUE(unanswered.over(true, true, true, false, 15.5, 5));
  EXPECT_FALSE(unanswered.over(true, false, true, false, 16, 5)) << "there is more to send again";
  EXPECT_FALSE(unanswered.over(true, true, true, false, 20, 5));
}

TEST(RelayProgress, ACollectorAboveThatEndedBeforeItConfirmedIsNotWaitedForForEver) {
  RelayProgress relayed;
  EXPECT_FALSE(relayed.over(false, true, true, false, 9, 5));
  EXPECT_FALSE(relayed.over(true, false, true, false, 10, 5));
  EXPECT_FALSE(relayed.over(true, true, true, false, 11, 5));
  EXPECT_FALSE(relayed.over(true, false, false, false, 14, 5)) << "unsent again: the connection has ended";
  EXPECT_TRUE(relayed.over(true, false, false, false, 15.5, 5));
  RelayProgress never;
  EXPECT_FALSE(never.over(false, false, false, false, 9, 5));
  EXPECT_FALSE(never.over(true, false, false, false, 99, 5)) << "nothing has got there yet";
  EXPECT_FALSE(relayed.over(true, false, true, false, 16, 5)) << "another one is there, which wants it";
}

TEST(RepeatedMessages, OfWhatARankSaysAgainOnlyNewsPasses) {
  RepeatedMessages repeats;
  instrumentation::wire::Position position;
  position.position.number = 7;
  EXPECT_TRUE(repeats.passes(3, 0xA));
  EXPECT_TRUE(repeats.passes(3, position)) << "the first, though it holds at none";
  position.position.number = 9;
  EXPECT_FALSE(repeats.passes(3, 0xA));
  EXPECT_FALSE(repeats.passes(3, position)) << "which gate it has passed last is none";
  EXPECT_TRUE(repeats.passes(4, 0xA)) << "of another rank";
  EXPECT_TRUE(repeats.passes(3, 0xB)) << "of another process";
  position.position.holding = true;
  EXPECT_TRUE(repeats.passes(3, position));
  EXPECT_FALSE(repeats.passes(3, position));
  position.position.number = 10;
  EXPECT_TRUE(repeats.passes(3, position)) << "held at the next gate: it was stepped";
  position.position.holding = false;
  EXPECT_TRUE(repeats.passes(3, position));
  position.detail = 2;
  EXPECT_TRUE(repeats.passes(3, position));
  position.lease_expirations = 1;
  EXPECT_TRUE(repeats.passes(3, position));
  EXPECT_FALSE(repeats.passes(3, position));
  repeats.forget(3);
  EXPECT_TRUE(repeats.passes(3, 0xB)) << "the last did not get there";
  EXPECT_TRUE(repeats.passes(3, position));
  EXPECT_FALSE(repeats.passes(3, 0xB));
  repeats.forget();
  EXPECT_TRUE(repeats.passes(3, 0xB)) << "another collector above";
}

TEST(HelloAgreement, WhileTheCollectorAboveHasAllNothingIsSaidAgain) {
  HelloAgreement agreement;
  agreement.begin(10);
  for (double s = 10; s < 100; s += 0.5) {
    agreement.announced(7, s);
    EXPECT_FALSE(agreement.answered(7, s + 0.4)) << s;
  }
}

/// A hello is half a second from the next, a ping a second: what is answered may be older than what was said
/// last.
TEST(HelloAgreement, AnAnswerMayBeAboutWhatWasSaidBefore) {
  HelloAgreement agreement;
  agreement.begin(10);
  for (int i = 0; i < 20; ++i) {  // a hello of another rank each half second
    agreement.announced(static_cast<std::uint64_t>(i), 10 + 0.5 * i);
    if (i < 3) continue;
    EXPECT_FALSE(agreement.answered(static_cast<std::uint64_t>(i - 3), 10 + 0.5 * i)) << i;
  }
  double now_s = 19.5;
  for (; now_s < 19.5 + HelloAgreement::kRecent_s; now_s += 0.5) {
    agreement.announced(100, now_s);
    EXPECT_FALSE(agreement.answered(16, now_s)) << "it may be about to come";
  }
  agreement.announced(100, now_s + HelloAgreement::kLate_s);
  EXPECT_TRUE(agreement.answered(16, now_s + HelloAgreement::kLate_s)) << "it stays behind";
}

TEST(HelloAgreement, ADifferenceThatLastsIsMendedSoonAndThenSeldom) {
  HelloAgreement agreement;
  agreement.begin(10);
  std::vector<double> again_s;
  for (int i = 0; i <= 600; ++i) {  // one that says no sum
    const double now_s = 10 + 0.1 * i;
    if (i % 5 == 0) agreement.announced(7, now_s);
    if (i % 10 == 0 && agreement.answered(0, now_s)) again_s.push_back(now_s - 10);
  }
  ASSERT_GE(again_s.size(), 6U);
  EXPECT_NEAR(again_s[0], 2, 0.01);
  EXPECT_NEAR(again_s[1], 6, 0.01);
  EXPECT_NEAR(again_s[2], 14, 0.01);
  EXPECT_NEAR(again_s[4] - again_s[3], HelloAgreement::kSeldom_s, 0.01);
  EXPECT_FALSE(agreement.answered(7, 70.5));
  EXPECT_FALSE(agreement.answered(0, 72.1));
  EXPECT_TRUE(agreement.answered(0, 72.6)) << "soon again, after an agreement";
}

TEST(HelloAgreement, ASumIsThatOfTheProcessesInAnyOrder) {
  EXPECT_EQ(hello_sum(1, 10) + hello_sum(2, 20), hello_sum(2, 20) + hello_sum(1, 10));
  EXPECT_NE(hello_sum(1, 10) + hello_sum(2, 20), hello_sum(1, 20) + hello_sum(2, 10));
  EXPECT_NE(hello_sum(1, 10), hello_sum(1, 11)) << "a rank that was started again";
  EXPECT_NE(hello_sum(0, 0), 0U) << "which stands for an unknown sum";
}

}  // namespace
}  // namespace shardscope::collector
