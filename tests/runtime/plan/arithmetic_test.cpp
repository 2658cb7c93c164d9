// Loss scale, estimators, closed forms: figures from the documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/estimator.h"
#include "runtime/plan/loss_scale.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::plan {
namespace {

using testing::HasSubstr;

TEST(LossScaler, FirstOverflowSpendsHysteresisThenEachHalves) {
  LossScaler scaler(LossScaleConfig{});
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_TRUE(scaler.update(true).skip);
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.hysteresis(), 1);
  (void)scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, RefusesWhatNoScaleCanBe) {
  const auto refusal = [](auto change) -> std::string {
    LossScaleConfig config;
    change(config);
    try {
      const LossScaler scaler(config);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.loss_scale = -1; }),
            "fp16.loss_scale is -1.000000; it must be 0 (dynamic) or above");
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.window = 0; }),
            "fp16.loss_scale_window is 0.000000; it must be at least 1");
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.hysteresis = -1; }),
            "fp16.hysteresis is -1.000000; it must be at least 0");
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.min_loss_scale = 0; }),
            "fp16.min_loss_scale is 0.000000; it must be above 0");
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.initial_scale_power = 128; }),
            "fp16.initial_scale_power is 128.000000; it must be 0 to 127");
  EXPECT_EQ(refusal([](LossScaleConfig& c) { c.initial_scale_power = 127; }), "accepted");
}

TEST(LossScaler, OrderDecidesTheDivisorOfAGrowthStep) {
  LossScaleConfig config;
  config.window = 2;
  for (const UnscaleOrder order : {UnscaleOrder::made_with, UnscaleOrder::updated}) {
    config.order = order;
    LossScaler scaler(config);
    (void)scaler.update(false);
    (void)scaler.update(false);
    const LossScaler::Step growth = scaler.update(false);
    EXPECT_TRUE(growth.scale_changed);
    EXPECT_EQ(growth.next_scale, 131072);
    EXPECT_EQ(growth.unscale_by, order == UnscaleOrder::made_with ? 65536 : 131072);
  }
}

// Stage 3 of DeepSpeed divides the norm it reports by the scale that it has then; stages 1 and 2 keep the
// old.
TEST(LossScaler, OrderDecidesTheReportedNormOfStage3) {
  for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(norm_order(UnscaleOrder::made_with, stage), UnscaleOrder::made_with);
    LossScaleConfig config;
    config.window = 1;
    config.order = UnscaleOrder::updated;
    config.norm_order = norm_order(config.order, stage);
    LossScaler scaler(config);
    EXPECT_EQ(scaler.update(false).norm_by, 65536);
    const LossScaler::Step growth = scaler.update(false);
    EXPECT_EQ(growth.unscale_by, 131072);
    EXPECT_EQ(growth.norm_by, stage == 3 ? 131072 : 65536) << stage;
  }
}

TEST(SkipRule, Stage3OfDeepSpeedLooksAtFp16Only) {
  for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
    for (const bool only : {false, true}) {
      EXPECT_TRUE(skips_overflow({.stage = stage, .fp16 = true, .stage3_skips_fp16_only = only}));
      EXPECT_EQ(skips_overflow({.stage = stage, .bf16_checked = true, .stage3_skips_fp16_only = only}),
                stage < 3 || !only);
      EXPECT_FALSE(skips_overflow({.stage = stage, .stage3_skips_fp16_only = only}));
    }
  }
}

TEST(LossScaler, RaisesAtTheMinimumAndChangesNothing) {
  LossScaleConfig config;
  config.initial_scale_power = 0;
  config.hysteresis = 1;
  LossScaler scaler(config);
  const LossScaler::Saved before = scaler.save();
  try {
    (void)scaler.update(true);
    ADD_FAILURE() << "the scale fell below its minimum";
  } catch (const LossScaleError& error) {  // DeepSpeed's words, which users search for
    EXPECT_THAT(error.what(), HasSubstr("Current loss scale already at minimum (1.0"));
  }
  EXPECT_EQ(scaler.save().iteration, before.iteration);
  EXPECT_EQ(scaler.save().last_overflow, before.last_overflow);
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, StaticAndNoneNeverMove) {
  LossScaler none = LossScaler::none();
  EXPECT_TRUE(none.update(true).skip);
  EXPECT_EQ(none.scale(), 1);
  LossScaleConfig config;
  config.loss_scale = 128;
  LossScaler fixed(config);
  for (int i = 0; i < 3000; ++i) (void)fixed.update(i % 7 == 0);
  EXPECT_EQ(fixed.scale(), 128);
  config.loss_scale = -1;
  EXPECT_THROW(LossScaler{config}, std::invalid_argument);
}

TEST(LossScaler, RestoredScalerGoesOnAlike) {
  LossScaleConfig config;
  config.window = 5;
  LossScaler a(config);
  for (int i = 0; i < 23; ++i) (void)a.update(i % 6 == 3);
  LossScaler b(config);
  b.restore(a.save());
  for (int i = 0; i < 40; ++i) {
    const bool overflow = i % 9 == 1;
    (void)a.update(overflow);
    (void)b.update(overflow);
    EXPECT_EQ(a.scale(), b.scale());
  }
}

// M14: t5-large on 4 GPUs, figures in MiB by shift as the documents give them.
TEST(Estimator, DocumentedT5Large) {
  EstimateInput input;
  input.params = 737'668'096;
  input.largest_layer_params = 32'899'072;
  input.gpus_per_node = 4;
  const auto rows = estimate_zero3(input);
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].gpu_bytes >> 20, 125);
  EXPECT_EQ(rows[2].gpu_bytes >> 20, 477);
  EXPECT_EQ(rows[4].gpu_bytes >> 20, 3291);
}

// M3, M15: t5-3b on 8 GPUs; the same inputs have two documented answers.
TEST(Estimator, DocumentedT53bInBothFormulas) {
  EstimateInput input;
  input.params = 2'851'598'336;
  input.largest_layer_params = 32'899'072;
  input.gpus_per_node = 8;
  const std::string doc = format_zero2(input);
  EXPECT_EQ(doc,
            "Estimated memory needed for params, optim states and gradients for a:\n"
            "HW: Setup with 1 node, 8 GPUs per node.\n"
            "SW: Model with 2851M total params.\n"
            "  per CPU  |  per GPU |   Options\n"
            "  127.48GB |   5.31GB | offload_optimizer=cpu\n"
            "  127.48GB |  15.93GB | offload_optimizer=none\n");
  input.formula = EstimateFormula::deepspeed_0_19;
  EXPECT_THAT(format_zero2(input), HasSubstr(" |  11.29GB | offload_optimizer=none"));
  // 0.3: an f-string of the enum since Python 3.11.
  EXPECT_THAT(format_zero2(input), HasSubstr(" |   5.31GB | offload_optimizer=OffloadDeviceEnum.cpu\n"));
  EXPECT_THAT(
      format_zero3(input),
      HasSubstr("   63.74GB |   0.79GB | offload_param=none, offload_optimizer=OffloadDeviceEnum.cpu, "
                "zero_init=1\n"));
  input.formula = EstimateFormula::doc;
  EXPECT_EQ(format_zero3(input),
            "Estimated memory needed for params, optim states and gradients for a:\n"
            "HW: Setup with 1 node, 8 GPUs per node.\n"
            "SW: Model with 2851M total params, 32M largest layer params.\n"
            "  per CPU  |  per GPU |   Options\n"
            "   71.71GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1\n"
            "  127.48GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=0\n"
            "   63.74GB |   0.79GB | offload_param=none, offload_optimizer=cpu , zero_init=1\n"
            "  127.48GB |   0.79GB | offload_param=none, offload_optimizer=cpu , zero_init=0\n"
            "    1.47GB |   6.10GB | offload_param=none, offload_optimizer=none, zero_init=1\n"
            "  127.48GB |   6.10GB | offload_param=none, offload_optimizer=none, zero_init=0\n");
}

// 0.2: host memory of several nodes counts the node's GPUs in the documents, all GPUs in DeepSpeed.
TEST(Estimator, HostMemoryOfSeveralNodesInBothFormulas) {
  EstimateInput input;
  input.params = 2'851'000'000;
  input.gpus_per_node = 8;
  input.nodes = 4;
  EXPECT_THAT(format_zero2(input), HasSubstr("\n  127.45GB |   5.31GB | offload_optimizer=cpu"));
  input.formula = EstimateFormula::deepspeed_0_19;
  EXPECT_THAT(format_zero2(input), HasSubstr("\n  509.80GB |   5.31GB | offload_optimizer"));
}

// Where 18 P does not fit a double: DeepSpeed's Python divides its integers exactly and rounds once
// (2575784416611752 if the product were rounded first).
TEST(Estimator, DividesAsPythonDoes) {
  EstimateInput input;
  input.params = 1'001'693'939'793'459;
  input.gpus_per_node = 7;
  input.formula = EstimateFormula::deepspeed_0_19;
  EXPECT_EQ(estimate_zero2(input)[1].gpu_bytes - 2 * input.params, 2'575'784'416'611'751);
  EXPECT_EQ(estimate_zero3(input)[4].gpu_bytes, 2'575'784'416'611'751) << "a largest layer of 0";
}

TEST(Estimator, RefusesWhatCannotBe) {
  EXPECT_THROW((void)estimate_zero2({.params = -1}), std::invalid_argument);
  EstimateInput input;
  input.params = 10;
  EXPECT_NO_THROW((void)estimate_zero2(input));
  input.largest_layer_params = -1;
  EXPECT_THROW((void)estimate_zero3(input), std::invalid_argument);
  input.params = std::int64_t{1} << 62;
  EXPECT_THROW((void)estimate_zero2(input), std::invalid_argument) << "beyond 64 bits of bytes";
  input.largest_layer_params = std::int64_t{1} << 62;
  EXPECT_THROW((void)estimate_zero3(input), std::invalid_argument);
  input.gpus_per_node = input.nodes = 1'000'000'000;
  EXPECT_THROW((void)estimate_zero2(input), std::invalid_argument);
  input.params = 10;
  input.nodes = std::int64_t{1} << 62;
  EXPECT_THROW((void)estimate_zero2(input), std::invalid_argument);
  input.nodes = input.gpus_per_node = 1;
  input.additional_buffer_factor = 0;
  EXPECT_THROW((void)estimate_zero2(input), std::invalid_argument);
}

TEST(MemoryModel, ExpressionsOfBothPrecisions) {
  EXPECT_EQ(state_expression(0, kMixedPrecision).text(), "16S");
  EXPECT_EQ(state_expression(1, kMixedPrecision).text(), "4S + 12S/n");
  EXPECT_EQ(state_expression(2, kMixedPrecision).text(), "2S + 14S/n");
  EXPECT_EQ(state_expression(3, kMixedPrecision).text(), "16S/n");
  EXPECT_EQ(state_expression(0, kFp32).text(), "16S");
  EXPECT_EQ(state_expression(1, kFp32).text(), "8S + 8S/n");
  EXPECT_THROW((void)state_expression(4, kFp32), std::invalid_argument);
}

TEST(MemoryModel, ExactStatesExceedTheExpressionByPaddingOnly) {
  const std::vector<std::int64_t> params = {640, 64, 63, 16384, 257, 1};
  std::int64_t elems = 0;
  for (const std::int64_t param : params) elems += param;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
    for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
      const auto exact = static_cast<double>(model_states(params, stage, world, kMixedPrecision).total());
      const double expression =
          state_expression(stage, kMixedPrecision).bytes(static_cast<double>(elems), world);
      EXPECT_GE(exact, expression - 1);
      // Flat stages pad by less than 2 elements a rank, stage 3 by less than one a parameter and rank.
      EXPECT_LE(exact - expression, 16.0 * 2 * world + 16.0 * static_cast<double>(params.size()));
    }
  }
}

TEST(MemoryModel, VolumesPerStep) {
  const std::vector<std::int64_t> params = {100, 7};
  const auto volume = [&params](std::uint32_t stage, std::int64_t micro_steps, bool multi_rank = false) {
    VolumeInput input;
    input.stage = stage;
    input.world = 4;
    input.micro_steps = micro_steps;
    input.multi_rank_allreduce = multi_rank;
    return step_volume(params, input);
  };
  for (const std::uint32_t stage : {0U, 1U, 2U}) EXPECT_EQ(volume(stage, 1).elems, 2 * 107) << stage;
  EXPECT_EQ(volume(3, 1).elems, 3 * 107);
  EXPECT_EQ(volume(3, 1).text, "3S");
  EXPECT_EQ(volume(3, 1).padded_elems, 3 * (100 + 8));
  EXPECT_EQ(volume(1, 4).text, "2S");
  EXPECT_EQ(volume(2, 4).text, "4S + S");
  EXPECT_EQ(volume(2, 4).elems, 5 * 107);
  EXPECT_EQ(volume(2, 1, true).text, "3S");
}

// Each parameter group is padded by itself, to a multiple of 2 * 4 elements.
TEST(StepVolume, PadsEveryParameterGroup) {
  VolumeInput input;
  input.world = 4;
  for (const std::uint32_t stage : {1U, 2U}) {
    input.stage = stage;
    input.groups = {};
    EXPECT_EQ(step_volume({9, 9, 9}, input).padded_elems, 27 + 32) << stage;
    input.groups = {0, 1, 1};
    EXPECT_EQ(step_volume({9, 9, 9}, input).padded_elems, 27 + 16 + 24) << stage;
    // A frozen parameter is in no group's buffer.
    input.groups = {0, 1, 0};
    input.trainable = {true, false, true};
    EXPECT_EQ(step_volume({9, 9, 9}, input).padded_elems, 18 + 24) << stage;
    input.trainable = {};
  }
}

}  // namespace
}  // namespace shardscope::plan
