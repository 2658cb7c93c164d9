// Learning rates and momenta as DeepSpeed 0.19.6 gives them, recorded from its schedulers with an optimizer
// at rate 0.25.
#include "runtime/plan/lr_schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardscope::plan {
namespace {

struct Recorded {
  std::int64_t step;
  double lr;
};

void expect_rates(const LrSchedule& schedule, const std::vector<Recorded>& recorded) {
  ASSERT_NO_THROW(check(schedule));
  for (const Recorded& at : recorded) {
    // The formulas are the same; only the last bits of logarithms and cosines may differ.
    EXPECT_NEAR(learning_rate(schedule, 0.25, at.step), at.lr, 1e-14) << "step " << at.step;
  }
}

TEST(LrSchedule, WarmupLogarithmic) {
  LrSchedule s;
  s.type = LrScheduleType::warmup;
  s.warmup_min_lr = 0.01;
  s.warmup_max_lr = 0.5;
  s.warmup_num_steps = 10;
  expect_rates(s, {{0, 0.01},
                   {1, 0.01},
                   {2, 0.15750469787535076},
                   {5, 0.35249530212464913},
                   {8, 0.4525140936260522},
                   {9, 0.47757882962526915},
                   {10, 0.49999999999999994},
                   {11, 0.5},
                   {15, 0.5},
                   {20, 0.5},
                   {21, 0.5},
                   {25, 0.5},
                   {30, 0.5},
                   {31, 0.5},
                   {40, 0.5}});
}

TEST(LrSchedule, WarmupDecayLinear) {
  LrSchedule s;
  s.type = LrScheduleType::warmup_decay;
  s.total_num_steps = 30;
  s.warmup_min_lr = 0.01;
  s.warmup_max_lr = 0.5;
  s.warmup_num_steps = 10;
  s.warmup_shape = WarmupShape::linear;
  expect_rates(s, {{0, 0.01},
                   {1, 0.01},
                   {2, 0.059000000000000004},
                   {5, 0.20600000000000002},
                   {8, 0.353},
                   {9, 0.402},
                   {10, 0.451},
                   {11, 0.5},
                   {15, 0.402},
                   {20, 0.2795},
                   {21, 0.255},
                   {25, 0.157},
                   {30, 0.0345},
                   {31, 0.01},
                   {40, 0.01}});
}

TEST(LrSchedule, WarmupCosineStaysAtItsFloor) {
  LrSchedule s;
  s.type = LrScheduleType::warmup_cosine;
  s.total_num_steps = 30;
  s.warmup_min_ratio = 0.1;
  s.warmup_num_steps = 10;
  s.cos_min_ratio = 0.05;
  expect_rates(s, {{0, 0.0},
                   {1, 0.025},
                   {2, 0.09273174902439577},
                   {5, 0.1822682509756042},
                   {8, 0.22819524707318725},
                   {9, 0.23970456462384807},
                   {10, 0.24999999999999997},
                   {11, 0.24853799044567262},
                   {15, 0.21521893026590252},
                   {20, 0.13125},
                   {21, 0.11267340727647256},
                   {25, 0.047281069734097486},
                   {30, 0.0125},
                   {31, 0.0125},
                   {40, 0.0125}});
}

TEST(LrSchedule, RangeTest) {
  LrSchedule s;
  s.type = LrScheduleType::lr_range_test;
  s.range_min_lr = 0.01;
  s.range_step_size = 8;
  s.range_step_rate = 2;
  expect_rates(s, {{0, 0.01},
                   {1, 0.0125},
                   {2, 0.015},
                   {5, 0.0225},
                   {8, 0.03},
                   {9, 0.0325},
                   {10, 0.035},
                   {11, 0.0375},
                   {15, 0.0475},
                   {20, 0.06},
                   {21, 0.0625},
                   {25, 0.0725},
                   {30, 0.085},
                   {31, 0.08750000000000001},
                   {40, 0.11}});
}

TEST(LrSchedule, RangeTestStaircase) {
  LrSchedule s;
  s.type = LrScheduleType::lr_range_test;
  s.range_min_lr = 0.01;
  s.range_step_size = 8;
  s.range_step_rate = 2;
  s.range_staircase = true;
  expect_rates(s, {{0, 0.01},
                   {1, 0.01},
                   {2, 0.01},
                   {5, 0.01},
                   {8, 0.03},
                   {9, 0.03},
                   {10, 0.03},
                   {11, 0.03},
                   {15, 0.03},
                   {20, 0.05},
                   {21, 0.05},
                   {25, 0.07},
                   {30, 0.07},
                   {31, 0.07},
                   {40, 0.11}});
}

TEST(LrSchedule, OneCycleWithDecayAndMomentum) {
  LrSchedule s;
  s.type = LrScheduleType::one_cycle;
  s.cycle_min_lr = 0.01;
  s.cycle_max_lr = 0.5;
  s.decay_lr_rate = 0.5;
  s.cycle_first_step_size = 8;
  s.cycle_second_step_size = 12;
  s.decay_step_size = 4;
  s.decay_mom_rate = 0.25;
  expect_rates(s, {{0, 0.01},
                   {1, 0.07125000000000005},
                   {2, 0.13250000000000012},
                   {5, 0.31625000000000003},
                   {8, 0.4999999999999999},
                   {9, 0.4591666666666667},
                   {10, 0.41833333333333333},
                   {11, 0.3775},
                   {15, 0.21416666666666667},
                   {20, 0.01},
                   {21, 0.008888888888888889},
                   {25, 0.006153846153846154},
                   {30, 0.0044444444444444444},
                   {31, 0.004210526315789474},
                   {40, 0.002857142857142857}});
  for (const Recorded& at : std::vector<Recorded>{{0, 0.8},
                                                  {1, 0.8875000000000001},
                                                  {2, 0.875},
                                                  {5, 0.8375},
                                                  {8, 0.8},
                                                  {9, 0.8083333333333333},
                                                  {10, 0.8166666666666667},
                                                  {11, 0.8250000000000001},
                                                  {15, 0.8583333333333334},
                                                  {20, 0.9},
                                                  {21, 0.95625},
                                                  {25, 1.1812500000000001},
                                                  {30, 1.4625000000000001},
                                                  {31, 1.51875},
                                                  {40, 2.025}}) {
    ASSERT_TRUE(momentum(s, at.step));
    EXPECT_NEAR(*momentum(s, at.step), at.lr, 1e-14) << "step " << at.step;
  }
}

TEST(LrSchedule, OneCycleInStairs) {
  LrSchedule s;
  s.type = LrScheduleType::one_cycle;
  s.cycle_min_lr = 0.01;
  s.cycle_max_lr = 0.5;
  s.cycle_first_step_size = 8;
  s.cycle_second_step_size = 12;
  s.cycle_first_stair_count = 4;
  s.cycle_second_stair_count = 3;
  expect_rates(s, {{0, 0.01},
                   {1, 0.01},
                   {2, 0.1325},
                   {5, 0.255},
                   {8, 0.5},
                   {9, 0.33666666666666667},
                   {10, 0.33666666666666667},
                   {11, 0.33666666666666667},
                   {15, 0.17333333333333334},
                   {20, 0.01},
                   {21, 0.01},
                   {25, 0.01},
                   {30, 0.01},
                   {31, 0.01},
                   {40, 0.01}});
  for (const Recorded& at : std::vector<Recorded>{{0, 0.8},
                                                  {1, 0.9},
                                                  {2, 0.875},
                                                  {5, 0.8500000000000001},
                                                  {8, 0.8},
                                                  {9, 0.8333333333333334},
                                                  {10, 0.8333333333333334},
                                                  {11, 0.8333333333333334},
                                                  {15, 0.8666666666666667},
                                                  {20, 0.9},
                                                  {21, 0.9},
                                                  {25, 0.9},
                                                  {30, 0.9},
                                                  {31, 0.9},
                                                  {40, 0.9}}) {
    ASSERT_TRUE(momentum(s, at.step));
    EXPECT_NEAR(*momentum(s, at.step), at.lr, 1e-14) << "step " << at.step;
  }
}

TEST(LrSchedule, ConstantIsTheOptimizersRate) {
  const LrSchedule s;
  EXPECT_EQ(learning_rate(s, 0.25, 0), 0.25);
  EXPECT_EQ(learning_rate(s, 0.25, 1000), 0.25);
  EXPECT_FALSE(momentum(s, 3));
}

TEST(LrSchedule, RefusesStepCountsThatCannotWork) {
  LrSchedule s;
  s.type = LrScheduleType::warmup;
  s.warmup_num_steps = 0;
  EXPECT_THROW(check(s), std::invalid_argument);
  s.type = LrScheduleType::one_cycle;
  s.cycle_first_step_size = 0;
  EXPECT_THROW(check(s), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::plan
