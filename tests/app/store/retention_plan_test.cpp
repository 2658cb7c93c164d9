// What a recording with limits lets go, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/store/retention.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {
namespace {

TEST(RetentionPlan, LetsGoWhatIsTooOldButForTheNewestOfARank) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond});
  plan.wrote(0, 1, 0, 1 * kSecond, 100);
  plan.wrote(1, 2, 0, 2 * kSecond, 100);
  for (std::int64_t i = 0; i < 20; ++i) plan.wrote(0, 3 + i, i * kSecond, (i + 1) * kSecond, 100);
  const auto due = plan.due(0);
  ASSERT_EQ(due.size(), 1U) << "rank 1 has only one block";
  EXPECT_EQ(due.at(0).size(), 10U);
  EXPECT_EQ(due.at(0).front(), 1);
  EXPECT_EQ(due.at(0).back(), 11) << "ended at 9 s";
  EXPECT_TRUE(plan.due(0).empty());
}

TEST(RetentionPlan, KeepsBelowASizeOldestFirst) {
  RetentionPlan plan({.max_bytes = 1000});
  for (std::int64_t i = 0; i < 10; ++i)
    plan.wrote(static_cast<std::uint32_t>(i % 2), i + 1, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.due(900).empty());
  const auto due = plan.due(1000);
  EXPECT_EQ(due.at(0), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(due.at(1), (std::vector<std::int64_t>{2}));
}

TEST(RetentionPlan, AMomentStaysUntilNothingElseMakesRoom) {
  RetentionPlan plan({.max_bytes = 1000, .around_ns = kSecond});
  for (std::int64_t i = 0; i < 10; ++i) plan.wrote(0, i + 1, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = kSecond / 2, .kind = "slow_step", .text = "slow"}));
  EXPECT_FALSE(plan.keep({.at_ns = kSecond, .kind = "slow_step", .text = "within the one before"}));
  EXPECT_EQ(plan.due(1000).at(0), (std::vector<std::int64_t>{3, 4})) << "1 and 2 lie around it";
  ASSERT_EQ(plan.moments().size(), 1U);
  const auto due = plan.due(5000);
  EXPECT_EQ(due.at(0).size(), 7U) << "all but the newest";
  EXPECT_TRUE(plan.moments().empty());
}

TEST(RetentionPlan, WhatWasRequestedGoesAfterWhatATriggerFound) {
  RetentionPlan plan({.max_age_ns = kSecond, .moments = 2, .around_ns = kSecond});
  const auto kept = [&plan](std::int64_t at, const char* kind) {
    EXPECT_TRUE(plan.keep({.at_ns = at * kSecond, .kind = kind, .text = ""}));
    std::vector<std::int64_t> times;
    for (const Moment& moment : plan.moments()) times.push_back(moment.at_ns / kSecond);
    return times;
  };
  (void)kept(10, kRequested);
  (void)kept(20, "slow_step");
  EXPECT_THAT(kept(30, "slow_step"), testing::ElementsAre(10, 30));
  EXPECT_THAT(kept(40, kRequested), testing::ElementsAre(10, 40));
  EXPECT_THAT(kept(50, "slow_step"), testing::ElementsAre(40, 50)) << "where all were requested, the oldest";
}

TEST(RetentionPlan, AFrequentKindDoesNotDisplaceARareOne) {
  RetentionPlan plan({.max_age_ns = kSecond, .moments = 3, .around_ns = kSecond});
  std::int64_t at = 0;
  for (const char* kind : {"loss_not_finite", "slow_step", "stalled", "slow_step", "slow_step", "slow_step"})
    EXPECT_TRUE(plan.keep({.at_ns = (at += 10) * kSecond, .kind = kind, .text = ""}));
  std::vector<std::string> kinds;
  for (const Moment& moment : plan.moments()) kinds.push_back(moment.kind);
  EXPECT_THAT(kinds, testing::ElementsAre("loss_not_finite", "stalled", "slow_step"));
  EXPECT_EQ(plan.moments().back().at_ns, 60 * kSecond) << "of the frequent kind the newest stays";
}

TEST(RetentionPlan, MomentsGoByNumberAndAge) {
  RetentionPlan plan(
      {.max_age_ns = kSecond, .moments = 2, .around_ns = kSecond, .moment_age_ns = 100 * kSecond});
  for (const std::int64_t at : {10, 20, 30})
    EXPECT_TRUE(plan.keep({.at_ns = at * kSecond, .kind = "loss_jump", .text = ""}));
  ASSERT_EQ(plan.moments().size(), 2U);
  EXPECT_EQ(plan.moments().front().at_ns, 20 * kSecond);
  plan.reached(125 * kSecond);
  (void)plan.due(0);
  ASSERT_EQ(plan.moments().size(), 1U);
  EXPECT_EQ(plan.moments().front().at_ns, 30 * kSecond);
}

/// A clock that jumped, or a time that was never one: one event must not make all others old.
TEST(RetentionPlan, ATimeThatIsYetToComeMakesNothingOld) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .moment_age_ns = 10 * kSecond});
  for (std::int64_t i = 0; i < 5; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = kSecond, .kind = "request", .text = ""}));
  plan.wrote(1, 6, 4 * kSecond, 3600 * kSecond, 100);
  plan.now(5 * kSecond);
  EXPECT_TRUE(plan.due(0).empty());
  EXPECT_EQ(plan.moments().size(), 1U);
  plan.now(5 * kSecond + INT64_C(31'000'000'000) + 10 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 4U) << "with time they become old";
  EXPECT_TRUE(plan.moments().empty());
}

TEST(RetentionPlan, AMomentThatLastedIsKeptToItsEnd) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .around_ns = 30 * kSecond});
  for (std::int64_t i = 0; i < 60; ++i) plan.wrote(0, 1 + i, i * 10 * kSecond, (i + 1) * 10 * kSecond, 100);
  const auto slow = [&](std::int64_t begin, std::int64_t end) {
    return plan.keep(
        {.at_ns = begin * kSecond, .kind = "slow_step", .text = "", .lasts_until_ns = end * kSecond});
  };
  EXPECT_TRUE(slow(100, 300));
  EXPECT_EQ(plan.moments().front().begin_ns, 70 * kSecond);
  EXPECT_EQ(plan.moments().front().end_ns, 330 * kSecond);
  EXPECT_FALSE(slow(300, 310)) << "within what is kept";
  EXPECT_TRUE(slow(310, 340)) << "its end does not";
  const auto due = plan.due(0);
  EXPECT_EQ(std::count_if(due.at(0).begin(), due.at(0).end(), [](auto id) { return id >= 7 && id <= 38; }), 0)
      << "60 to 380 s";
  EXPECT_EQ(due.at(0).size(), 6U + 58U - 38U);
}

/// Their moment gone, blocks are as old as they are.
TEST(RetentionPlan, WhatAForgottenMomentKeptGoes) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .moments = 1, .around_ns = kSecond});
  for (std::int64_t i = 0; i < 50; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = 5 * kSecond, .kind = "request", .text = ""}));
  EXPECT_TRUE(plan.keep({.at_ns = 48 * kSecond, .kind = "request", .text = ""}));
  EXPECT_EQ(plan.due(0).at(0).size(), 39U) << "all that ended before 40 s";
  EXPECT_TRUE(plan.keep({.at_ns = 60 * kSecond, .kind = "request", .text = ""}));
  for (std::int64_t i = 50; i < 62; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  plan.reached(90 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 19U) << "59 s to 61 s stays, and the newest: 59 to 62";
}

/// A step is judged when the next has begun; until then what lies around it must be there.
TEST(RetentionPlan, AStepThatGoesOnIsNotTooOld) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .around_ns = 5 * kSecond});
  for (std::int64_t i = 0; i < 60; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  plan.pending(30 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 24U) << "what ended before 25 s";
  plan.reached(1000 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 35U) << "a step without an end does not keep for ever";
}

}  // namespace
}  // namespace shardscope::store
