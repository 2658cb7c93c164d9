// What overflow, the loss scale and clipping make of a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/optim/gradient_norm.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::loss_scale_test {
namespace {

RunSpec spec_of(int stage, const std::string& type, std::uint32_t world, std::int64_t steps) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, 1, type);
  spec.world = world;
  spec.steps = steps;
  return spec;
}

TrainingRun without_a_step(RunSpec spec) {
  spec.steps = 0;
  return train(spec);
}

std::int64_t weights_not_finite(const TrainingRun& run) {
  std::int64_t count = 0;
  for (const auto& weights : run.weights) {
    count += std::count_if(weights.begin(), weights.end(), [](float x) { return !std::isfinite(x); });
  }
  return count;
}

// ---- Overflow ------------------------------------------------------------------------------------------

// Only one rank has it in what it owns, and that is enough for all (S17).
TEST(Overflow, OnOneRankSkipsTheStepOfAll) {
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool offload : {false, true}) {
      if (stage == 0 && offload) continue;
      RunSpec spec = spec_of(stage, "fp16", 3, 2);
      spec.config["fp16"]["hysteresis"] = 1;
      if (offload) spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
      const TrainingRun before = without_a_step(spec);
      for (const std::uint32_t rank : {0U, 1U, 2U}) {
        spec.overflows_on = rank;
        const TrainingRun run = train(spec);
        for (const RankRun& of : run.ranks) {
          ASSERT_EQ(of.error, "");
          for (const StepResult& step : of.steps) {
            EXPECT_TRUE(step.skipped) << "stage " << stage << " offload " << offload << " on " << rank;
            EXPECT_TRUE(std::isnan(step.grad_norm));
          }
          EXPECT_EQ(of.steps[0].loss_scale, 65536);
          EXPECT_EQ(of.steps[1].loss_scale, 32768);
        }
        EXPECT_TRUE(run.weights == before.weights) << "stage " << stage << " offload " << offload;
      }
    }
  }
}

// bf16 skips where check_grad_overflow says so; DeepSpeed's stage 3 never looks (1.4).
TEST(Overflow, InBf16IsSkippedWhereItIsChecked) {
  for (const int stage : {1, 2, 3}) {
    RunSpec spec = spec_of(stage, "bf16", 2, 2);
    const TrainingRun before = without_a_step(spec);
    spec.overflows_on = 1;
    for (const bool check : {true, false}) {
      for (const std::string compat : {"shardscope", "deepspeed"}) {
        spec.config["bf16"]["check_grad_overflow"] = check;
        spec.config["shardscope"] = {{"compat", compat}};
        const TrainingRun run = train(spec);
        const bool skips = check && !(stage == 3 && compat == "deepspeed");
        for (const RankRun& rank : run.ranks) {
          ASSERT_EQ(rank.error, "");
          for (const StepResult& step : rank.steps) {
            EXPECT_EQ(step.skipped, skips) << "stage " << stage << " check " << check << ' ' << compat;
          }
        }
        if (skips) {
          EXPECT_TRUE(run.weights == before.weights) << "stage " << stage << ' ' << compat;
        } else {
          EXPECT_GT(weights_not_finite(run), 0) << "it is applied and shows";
        }
      }
    }
  }
}

// ---- Scale and its update --------------------------------------------------------------------------------

// With a window of 2 the scale grows in the third step (1.4). Divided by the scale that the loss was
// multiplied by, the gradients are those of a run whose scale does not move; divided by the new one, as in
// DeepSpeed, they are half as large in that step and in no other (docs/zero.md D8).
TEST(UnscaleOrder, DividesByTheNewScaleOnAGrowthStepWhereAsked) {
  for (const int stage : {0, 1, 2, 3}) {
    const auto run = [&](std::int64_t steps, double fixed, bool updated) {
      RunSpec spec = spec_of(stage, "fp16", 2, steps);
      spec.config["gradient_clipping"] = 0;
      spec.config["fp16"].update(
          {{"loss_scale", fixed}, {"initial_scale_power", 8}, {"loss_scale_window", 2}});
      spec.config["shardscope"] = {{"compat", {{"update_scale_before_unscale", updated}}}};
      return train(spec);
    };
    EXPECT_EQ(first_difference(run(2, 0, false), run(2, 0, true)), "") << "stage " << stage;

    const TrainingRun still = run(3, 256, false), made_with = run(3, 0, false), updated = run(3, 0, true);
    EXPECT_EQ(first_difference(still, made_with), "") << "stage " << stage;
    EXPECT_NE(first_difference(made_with, updated), "") << "stage " << stage;

    // Of the norm only DeepSpeed's stage 3 reports what the new scale makes of it.
    for (std::size_t step = 0; step < 3; ++step) {
      const double norm = still.ranks[0].steps[step].grad_norm;
      ASSERT_GT(norm, 0);
      EXPECT_EQ(made_with.ranks[0].steps[step].grad_norm, norm) << "stage " << stage << " step " << step;
      EXPECT_EQ(updated.ranks[0].steps[step].grad_norm, stage == 3 && step == 2 ? norm / 2 : norm)
          << "stage " << stage << " step " << step;
    }
  }
}

// ---- Clipping (S19) --------------------------------------------------------------------------------------

TEST(Clip, UndoesTheScaleAndClipsWhatIsAboveTheLimit) {
  constexpr double kScale = 65536;
  const auto of_norm = [](double norm, double limit) {
    return optim::clip(norm * kScale * norm * kScale, kScale, limit);
  };
  const optim::Clipping below = of_norm(0.5, 1);
  EXPECT_EQ(below.norm, 0.5);
  EXPECT_EQ(below.factor, 1 / kScale) << "below the limit only the scale is undone";
  const optim::Clipping above = of_norm(4, 1);
  EXPECT_EQ(above.norm, 4) << "the norm is that before clipping";
  EXPECT_DOUBLE_EQ(above.factor, 1 / (kScale * 4.000001));
  // At the limit itself the 1e-6 clips already, and keeps the result below the limit.
  EXPECT_DOUBLE_EQ(of_norm(1, 1).factor, 1 / (kScale * 1.000001));
  EXPECT_DOUBLE_EQ(of_norm(2, 0.5).factor, 1 / (kScale * (2.000001 / 0.5)));
  EXPECT_EQ(of_norm(1e6, 0).factor, 1 / kScale) << "0 is off";
  EXPECT_EQ(of_norm(0, 1).factor, 1 / kScale);
}

}  // namespace
}  // namespace shardscope::engine::testing::loss_scale_test
