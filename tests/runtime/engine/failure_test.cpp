// A rank that fails ends the others with its message.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::failure_test {
namespace {

TEST(Failure, OfOneRankEndsAllWithItsMessage) {
  for (const int stage : {0, 1, 2, 3}) {
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.config = make_config(stage);
    spec.world = 3;
    spec.steps = 1000000;
    spec.after_step = [](const Context& context, const StepResult& result) {
      if (context.rank() == 1 && result.step == 2) throw std::runtime_error("the data went away");
    };
    const auto begin = std::chrono::steady_clock::now();
    const TrainingRun run = train(spec);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "stage " << stage;
    EXPECT_EQ(run.ranks[1].error, "the data went away");
    for (const std::uint32_t other : {0U, 2U}) {
      EXPECT_NE(run.ranks[other].error.find("rank 1 failed: the data went away"), std::string::npos)
          << "stage " << stage << ": " << run.ranks[other].error;
      EXPECT_LE(run.ranks[other].steps.size(), 4U);
    }
  }
}

// A loss scale that cannot fall further is an error of all ranks, not a run that learns nothing.
TEST(Failure, LossScaleAtItsMinimum) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(2, 1, "fp16");
  // 2^30 overflows fp16; one halving later the scale may not fall further.
  spec.config["fp16"]["initial_scale_power"] = 30;
  spec.config["fp16"]["hysteresis"] = 1;
  spec.config["fp16"]["min_loss_scale"] = 536870912;
  spec.world = 2;
  spec.steps = 10;
  const TrainingRun run = train(spec);
  for (const RankRun& rank : run.ranks) {
    EXPECT_NE(rank.error.find("already at minimum"), std::string::npos) << rank.error;
    ASSERT_FALSE(rank.steps.empty());
    EXPECT_TRUE(rank.steps[0].skipped);
    EXPECT_EQ(rank.steps[0].loss_scale, 1073741824.0);
  }
}

// Overflow: the step is skipped, weights stay, the scale halves, and training goes on.
TEST(LossScale, OverflowSkipsAndHalves) {
  for (const int stage : {0, 3}) {
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.config = make_config(stage, 1, "fp16");
    spec.config["fp16"]["initial_scale_power"] = 24;
    spec.config["fp16"]["hysteresis"] = 1;
    spec.world = 2;
    spec.steps = 16;
    const TrainingRun run = train(spec);
    const std::vector<StepResult>& steps = run.ranks[0].steps;
    ASSERT_EQ(run.ranks[0].error, "");
    ASSERT_TRUE(steps[0].skipped);
    std::size_t first_update = 0;
    while (first_update < steps.size() && steps[first_update].skipped) {
      if (first_update > 0) {
        EXPECT_EQ(steps[first_update].loss_scale, steps[first_update - 1].loss_scale / 2);
      }
      ++first_update;
    }
    ASSERT_LT(first_update, steps.size()) << "every step overflowed";
    EXPECT_GT(first_update, 0U);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::failure_test
