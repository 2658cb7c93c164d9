// What plays the changes of findings: an attached DeepSpeed run is replayed as `what-if` replays it, and what
// cannot be is refused with its reason.
#include "app/cli/advice_player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/attached/replay.h"
#include "app/analysis/attached/settings.h"
#include "tests/app/analysis/attached/made_ddp.h"
#include "tests/app/analysis/attached/made_groups.h"
#include "tests/app/analysis/attached/made_training.h"

namespace shardscope::cli {
namespace {

using analysis::attached::AttachedRun;
using test::MadeTraining;
using testing::HasSubstr;

const std::vector<analysis::Change> kOneBucket{{"zero_optimization.reduce_bucket_size", "3000"}};

TEST(AdvicePlayer, ReplaysAnAttachedRunAsWhatIfDoes) {
  MadeTraining made;
  const store::Store& store = made.build();
  const analysis::Player player = player_of("", store);
  const AttachedRun run(store);
  ASSERT_EQ(run.missing(), "");
  const analysis::PlayOutcome recorded = player({});
  ASSERT_EQ(recorded.refused, "");
  EXPECT_DOUBLE_EQ(recorded.step_ms, run.costs().step_ms);
  const analysis::PlayOutcome played = player(kOneBucket);
  ASSERT_EQ(played.refused, "");
  const analysis::attached::ReplaySettings settings =
      analysis::attached::changed_settings(store.tables(), run.recorded_settings(), kOneBucket);
  EXPECT_DOUBLE_EQ(played.step_ms, run.predicted_ms(run.play(settings)));
  EXPECT_EQ(played.model_error_pct, run.model_error_pct());
  EXPECT_EQ(played.held_bytes, recorded.held_bytes) << "buckets are no model states";
  // One reduction's latency less.
  EXPECT_NEAR(recorded.step_ms - played.step_ms, 0.02, 0.005);
}

TEST(AdvicePlayer, RefusesWhatAReplayCannotTell) {
  MadeTraining made, other(3, "FSDP1 (PyTorch 2.13.0)"), lower(2);
  const store::Store& store = made.build();
  const analysis::Player player = player_of("", store, 1);
  EXPECT_THAT(player({{"zero_optimization.offload_param.device", "none"}}).refused,
              HasSubstr("offload_param"));
  EXPECT_THAT(player(kOneBucket).refused, HasSubstr("--plays")) << "the refused one was the only one allowed";
  EXPECT_THAT(player_of("", other.build())({}).refused,
              HasSubstr("FSDP1 is configured by the script's calls"));
  MadeTraining gpu;
  gpu.run().on("cuda:0");
  EXPECT_THAT(player_of("", gpu.build())(kOneBucket).refused, HasSubstr("on a GPU"));
  // The hooks of stage 3 are in no recording of stage 2: the step would seem shorter than it gets.
  const store::Store& two = lower.build();
  EXPECT_THAT(player_of("", two)({{"zero_optimization.stage", "3"}}).refused, HasSubstr("stage 3's hooks"));
  EXPECT_EQ(player_of("", two)({{"zero_optimization.stage", "1"}}).refused, "");
}

/// Advice about memory keeps its first option, and says why its gain is not known.
TEST(AdvicePlayer, AReplayWithoutAPeakPredictsNoMemory) {
  MadeTraining made;
  const store::Store& store = made.build();
  std::vector<analysis::Finding> findings(2);
  for (analysis::Finding& finding : findings)
    analysis::advise(finding, {kOneBucket, "Set reduce_bucket_size to 3000."});
  findings[0].cost_bytes = 1000;
  findings[1].cost_ms = 1;
  analysis::try_advice(findings, player_of("", store));
  EXPECT_EQ(findings[0].changes.size(), 1U);
  EXPECT_FALSE(findings[0].gain_bytes);
  EXPECT_THAT(findings[0].gain_basis, HasSubstr("has times, not the device's peak"));
  EXPECT_TRUE(findings[1].changes.empty()) << "0.02 ms are no gain";
  EXPECT_THAT(findings[1].gain_basis, HasSubstr("none makes a step 2 % shorter"));
}

/// A finding with one option, which is played; of micro-steps that are too short for a finding of their own.
analysis::Finding tried(const store::Store& store, const std::vector<analysis::Change>& changes) {
  std::vector<analysis::Finding> findings(1);
  findings[0].cost_ms = 1;
  findings[0].severity = instrumentation::Severity::warning;
  analysis::advise(findings[0], {changes, "As the option says."});
  analysis::try_advice(findings, player_of("", store));
  return findings[0];
}

TEST(AdvicePlayer, PredictsWhatFsdp2GainsByReducingOnce) {
  test::MadeGroups made(true);
  const store::Store& store = made.build(4);
  const analysis::Finding found = tried(store, {{"fully_shard.reduce_in_last_micro_step_only", "true"}});
  // Three of four micro-steps no longer reduce their three groups.
  constexpr std::int64_t kSaved = 9 * (test::MadeGroups::kReduce + test::MadeGroups::kBucket);
  ASSERT_TRUE(found.gain_ms) << found.gain_basis;
  EXPECT_NEAR(*found.gain_ms, kSaved * 1e-6, 1e-3);
  EXPECT_EQ(found.changes.size(), 1U);
  EXPECT_THAT(found.gain_basis, HasSubstr("model states and gathered parameters of "));
  EXPECT_THAT(found.gain_basis, HasSubstr("% off"));
}

/// A gather that holds the host until it ends is not hidden by asking earlier: that is not advised.
TEST(AdvicePlayer, PrefetchesThatGainNothingAreNotAdvised) {
  const std::vector<analysis::Change> earlier{{"fully_shard.groups_to_forward_prefetch", "2"}};
  for (const bool blocking : {true, false}) {
    test::MadeGroups made(blocking);
    const store::Store& store = made.build();
    const analysis::Player player = player_of("", store);
    const double gain = player({}).step_ms - player(earlier).step_ms;
    EXPECT_NEAR(gain, blocking ? 0 : test::MadeGroups::kGather * 1e-6, 4e-3);
    if (!blocking) continue;
    const analysis::Finding found = tried(store, earlier);
    EXPECT_TRUE(found.changes.empty());
    EXPECT_EQ(found.severity, instrumentation::Severity::info);
    EXPECT_THAT(found.gain_basis, HasSubstr("none makes a step 2 % shorter"));
  }
}

TEST(AdvicePlayer, PredictsWhatDdpGainsByReducingOnce) {
  test::MadeDdp made;
  made.reduce_in_each();
  const store::Store& store = made.build(4);
  const analysis::Finding found =
      tried(store, {{"DistributedDataParallel.reduce_in_last_micro_step_only", "true"}});
  ASSERT_TRUE(found.gain_ms) << found.gain_basis;
  EXPECT_NEAR(*found.gain_ms, 3 * test::MadeDdp::reduction(2000) * 1e-6, 1e-3);
}

/// On a GPU spans are the host's: the advice stays, and says why its gain is not known.
TEST(AdvicePlayer, OnAGpuTheAdviceSaysWhyNoTimeIsPredicted) {
  test::MadeGroups made(true);
  made.run().on("cuda:0");
  const store::Store& store = made.build();
  std::vector<analysis::Finding> findings(1);
  findings[0].cost_ms = 1;
  analysis::advise(findings[0], {{{"fully_shard.reshard_after_forward", "false"}}, "Keep them."});
  analysis::try_advice(findings, player_of("", store));
  EXPECT_EQ(findings[0].next_step, "Keep them.");
  EXPECT_THAT(findings[0].gain_basis, HasSubstr("not predicted: "));
  EXPECT_THAT(findings[0].gain_basis, HasSubstr("GPU"));
}

}  // namespace
}  // namespace shardscope::cli
