// The section scheduler: that the file reaches the schedule whole, and what cannot work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::HasSubstr;

std::string with_scheduler(const std::string& scheduler) {
  return R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.25}}, "scheduler": )" +
         scheduler + "}";
}

// The rates themselves are tested with plan::LrSchedule; here, that the file reaches it whole.
TEST(Scheduler, ParametersReachTheSchedule) {
  const TrainingConfig cycle = parse(with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "decay_lr_rate": 0.5,
          "cycle_first_step_size": 8, "cycle_second_step_size": 12, "decay_step_size": 4,
          "cycle_momentum": false}})"));
  // As recorded from DeepSpeed (tests/runtime/plan/lr_schedule_test.cpp).
  EXPECT_NEAR(cycle.learning_rate(1), 0.07125, 1e-14);
  EXPECT_NEAR(cycle.learning_rate(21), 0.008888888888888889, 1e-14);
  EXPECT_EQ(cycle.betas(1).beta1, 0.9);

  const TrainingConfig stairs = parse(with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "cycle_first_step_size": 8,
          "cycle_second_step_size": 12, "cycle_first_stair_count": 4, "cycle_second_stair_count": 3}})"));
  EXPECT_NEAR(stairs.learning_rate(9), 0.33666666666666667, 1e-14);
  EXPECT_NEAR(stairs.betas(9).beta1, 0.8333333333333334, 1e-14);
  EXPECT_EQ(stairs.betas(9).beta2, 0.99);  // DeepSpeed sets the pair

  const TrainingConfig decay = parse(with_scheduler(
      R"({"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": 10,
          "warmup_type": "linear"}})"));
  EXPECT_EQ(decay.scheduler.total_num_steps, 500);
  EXPECT_DOUBLE_EQ(decay.learning_rate(6), 0.25 * 5 / 10);  // up to the optimizer's rate
  EXPECT_EQ(parse(R"({"train_batch_size": 8})").learning_rate(100), 1e-3);
}

TEST(Scheduler, WhatCannotWorkIsRefused) {
  const auto refused = [](const char* scheduler) { return error_of(with_scheduler(scheduler)); };
  EXPECT_THAT(refused(R"({"type": "WarmupLR", "params": {"warmup_num_steps": 0}})"), HasSubstr("at least 1"));
  EXPECT_THAT(refused(R"({"type": "WarmupCosineLR"})"), HasSubstr("total_num_steps: missing"));
  EXPECT_THAT(refused(R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.1}})"), HasSubstr("cycle_max_lr"));
  EXPECT_THAT(refused(R"({"type": "WarmupLR", "params": {"last_batch_iteration": 3}})"), HasSubstr("-1"));
  EXPECT_THAT(refused(R"({"params": {}})"), HasSubstr("WarmupLR"));
  // Momentum that grows without bound: at parse time where the length of the run is known, else at the step.
  const std::string grows = with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "cycle_first_step_size": 8,
          "decay_step_size": 4, "decay_mom_rate": 0.25}})");
  ParseOptions options;
  options.total_steps = 16;
  EXPECT_LT(parse_config(grows, options).betas(15).beta1, 1);
  options.total_steps = 40;
  EXPECT_THROW(static_cast<void>(parse_config(grows, options)), ConfigError);
  options.total_steps = 0;
  EXPECT_THROW(static_cast<void>(parse_config(grows, options).betas(39)), ConfigError);
}

}  // namespace
}  // namespace shardscope::config
