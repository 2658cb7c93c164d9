// The replay of attached runs: of a training whose times are closed forms it plays what the closed forms say.
#include "app/analysis/attached/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "app/analysis/attached/settings.h"
#include "tests/app/analysis/attached/made_training.h"

namespace shardscope::analysis::attached {
namespace {

using test::MadeTraining;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kMs = 1e-6;
/// A nanosecond at each gate, of which three micro-steps have fewer than a hundred.
constexpr double kGates = 100 * kMs;
constexpr std::int64_t kForward =
    3 * (MadeTraining::kIssue + MadeTraining::kGather + MadeTraining::kUnpack + MadeTraining::kLayer);
constexpr std::int64_t kBackward = 3 * MadeTraining::kLayer;
constexpr std::int64_t kBuckets =
    2 * MadeTraining::kBucket + MadeTraining::reduction(2000) + MadeTraining::reduction(1000);
constexpr std::int64_t kAfter = MadeTraining::kNorm + MadeTraining::kUpdate;
constexpr std::int64_t kStep = kForward + kBackward + kBuckets + kAfter;

ReplaySettings with(const store::Store& store, const AttachedRun& run, const std::vector<Change>& changes) {
  return changed_settings(store.tables(), run.recorded_settings(), changes);
}

TEST(AttachedReplay, PlaysTheRecordedSettingsAsTheyWere) {
  MadeTraining made;
  const AttachedRun run(made.build());
  ASSERT_EQ(run.missing(), "");
  EXPECT_NEAR(run.costs().step_ms, kStep * kMs, kGates);
  EXPECT_NEAR(run.modelled().step_ms, kStep * kMs, kGates);
  EXPECT_EQ(run.modelled().actions.gathers, 3);
  EXPECT_EQ(run.modelled().actions.flushes, 2);
  EXPECT_EQ(run.costs().steps.size(), 5U) << "all but the first";
}

TEST(AttachedReplay, SmallerBucketsAreMoreReductions) {
  MadeTraining made;
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const ReplayOutcome played = run.play(with(store, run, {{"zero_optimization.reduce_bucket_size", "1000"}}));
  EXPECT_EQ(played.actions.flushes, 3);
  // The host's part was seen of one size only: half as many elements take half of it, so the three cost what
  // the two of 2,000 and 1,000 elements did.
  const double buckets = 3 * MadeTraining::reduction(1000) + 1.5 * MadeTraining::kBucket;
  EXPECT_NEAR(played.step_ms, (kStep - kBuckets + buckets + 0.5 * MadeTraining::kBucket) * kMs, kGates);
  EXPECT_EQ(played.bucket_bytes, 4000);
}

TEST(AttachedReplay, APrefetchIsWaitedForOnceAndHoldsMore) {
  MadeTraining made;
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const ReplayOutcome played =
      run.play(with(store, run, {{"zero_optimization.stage3_prefetch_bucket_size", "3000"}}));
  EXPECT_EQ(played.actions.gathers, 1);
  EXPECT_EQ(played.actions.gathered_elems, 3000);
  EXPECT_EQ(played.actions.peak_gathered_elems, 3000);
}

TEST(AttachedReplay, MicroStepsAreRepeatedAndTheUpdateIsNot) {
  MadeTraining made;
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const ReplayOutcome played = run.play(with(store, run, {{"gradient_accumulation_steps", "3"}}));
  EXPECT_NEAR(played.step_ms, (3 * (kForward + kBackward + kBuckets) + kAfter) * kMs, kGates);
  EXPECT_EQ(played.actions.flushes, 6);
}

TEST(AttachedReplay, StageOneReducesInTheLastMicroStepOnly) {
  MadeTraining made(1);
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  EXPECT_EQ(run.modelled().actions.flushes, 2);
  EXPECT_EQ(run.play(with(store, run, {{"gradient_accumulation_steps", "3"}})).actions.flushes, 2);
}

TEST(AttachedReplay, SizesThatWereNotRecordedGiveNoAnswer) {
  MadeTraining made;
  made.run().change_tables([](ev::RunTables& tables) { tables.param_bytes = 0; });
  EXPECT_THAT(AttachedRun(made.build()).missing(), HasSubstr("size of its elements was not recorded"));
}

TEST(AttachedReplay, MoreThanFitsInMemoryIsRefused) {
  MadeTraining made(2);
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  ReplaySettings settings = run.recorded_settings();
  settings.zero.gradient_accumulation_steps = 1'000'000;
  EXPECT_THROW((void)run.play(settings), std::invalid_argument);
}

TEST(AttachedReplay, WhatNoHookReleasesIsReleasedAtTheEndOfEachBackward) {
  MadeTraining made;
  made.without_input_gradient();
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  EXPECT_EQ(run.play(with(store, run, {{"gradient_accumulation_steps", "2"}})).actions.gathers, 6);
}

TEST(AttachedReplay, StageTwoGathersOnceAfterTheUpdate) {
  MadeTraining made;
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const ReplaySettings settings = with(store, run, {{"zero_optimization.stage", "2"}});
  const ReplayOutcome played = run.play(settings);
  EXPECT_EQ(played.actions.gathers, 0);
  EXPECT_THAT(played.actions.after_elems, testing::ElementsAre(3000));
  // An all-reduce moves twice what a reduce-scatter does; the one gather is three times one of a layer.
  const double buckets = 2 * MadeTraining::kBucket + 2 * 20'000 + 2 * 10 * 3000;
  EXPECT_NEAR(played.step_ms,
              (3 * MadeTraining::kLayer + kBackward + buckets + kAfter + 3 * MadeTraining::kGather) * kMs,
              kGates);
  // 20S/n with the gradients once more becomes 4S + 16S/n.
  EXPECT_EQ(played.model_state_bytes - run.modelled().model_state_bytes,
            (4 * 3000 + 8 * 3000) - (10 * 3000 + 2 * 3000));
  EXPECT_THAT(run.caveats(settings), testing::Contains(HasSubstr("overlap_comm changes no time")));
}

TEST(AttachedReplay, StageThreeOfStageTwoLacksWhatWasNotRecordedAndSaysSo) {
  MadeTraining made(2);
  const store::Store& store = made.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const ReplaySettings settings = with(store, run, {{"zero_optimization.stage", "3"}});
  EXPECT_EQ(run.play(settings).actions.gathers, 3);
  EXPECT_THAT(run.caveats(settings), testing::Contains(HasSubstr("will rather take longer")));
  EXPECT_THAT(run.caveats(run.recorded_settings()), IsEmpty());
}

TEST(AttachedReplay, ARunThatDecidedOtherwiseIsNotPlayed) {
  // Its configuration lets one prefetch take everything; three gathers were made all the same.
  MadeTraining made(3, "DeepSpeed 0.19.8", 3000);
  const AttachedRun run(made.build());
  EXPECT_THAT(run.missing(), HasSubstr("1 gathers in a step and the run had 3"));
}

TEST(AttachedReplay, AModelThatMissesTheRecordedStepPredictsNoTime) {
  MadeTraining made;
  made.delay_last_gather(2 * kStep);
  const AttachedRun run(made.build());
  EXPECT_EQ(run.missing(), "");
  EXPECT_THAT(run.no_times(), HasSubstr("more than the 10 % within which a replay is taken for the run"));
  EXPECT_EQ(run.modelled().actions.gathers, 3) << "decisions and memory are known";
  EXPECT_TRUE(std::isnan(run.modelled().step_ms));
}

TEST(AttachedReplay, NothingIsPlayedOfTooFewSteps) {
  MadeTraining few;
  EXPECT_THAT(AttachedRun(few.build(3)).missing(), HasSubstr("2 whole steps after the first; 3 are needed"));
}

TEST(AttachedReplay, OfAGpuDecisionsAndMemoryButNoTimes) {
  MadeTraining gpu;
  gpu.run().on("cuda:0");
  const store::Store& store = gpu.build();
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  EXPECT_THAT(run.no_times(), HasSubstr("queues work"));
  const ReplayOutcome played = run.play(with(store, run, {{"zero_optimization.reduce_bucket_size", "1000"}}));
  EXPECT_EQ(run.modelled().actions.flushes, 2);
  EXPECT_EQ(played.actions.flushes, 3);
  EXPECT_EQ(played.bucket_bytes, 4000);
  EXPECT_TRUE(std::isnan(played.step_ms) && std::isnan(played.waited_ms));
  EXPECT_TRUE(std::isnan(run.predicted_ms(played)) && std::isnan(run.model_error_pct()));
}

}  // namespace
}  // namespace shardscope::analysis::attached
