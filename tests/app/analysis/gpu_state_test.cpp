// Energy, clocks and limits of GPUs, and tokens per joule.
#include "app/analysis/gpu_state.h"

#include <gtest/gtest.h>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kGpuSecond = 1'000'000'000;

ev::Event sample(std::int64_t at_ns, std::int64_t energy_mj, std::uint32_t mhz, std::uint8_t limits = 0) {
  return {static_cast<std::uint64_t>(at_ns),
          EventKind::gpu_sample,
          StreamId::host,
          limits,
          mhz,
          ev::kNoId,
          ev::kNoId,
          energy_mj,
          kGpuSecond};
}

TEST(GpuState, PowerIsTheEnergyBetweenTheFirstAndTheLastSample) {
  GpuState state;
  state.add(sample(0, 1'000'000, 1000));
  EXPECT_FALSE(state.watts()) << "one sample is no interval";
  state.add(sample(kGpuSecond, 1'900'000, 2000, 1));
  GpuState later;
  later.add(sample(4 * kGpuSecond, 3'000'000, 1500, 3));
  state.add(later);
  EXPECT_DOUBLE_EQ(state.joules().value(), 2000);
  EXPECT_DOUBLE_EQ(state.watts().value(), 500);
  EXPECT_EQ(state.over_ns(), 4 * kGpuSecond);
  EXPECT_DOUBLE_EQ(state.sm_mhz().value(), 1500);
  EXPECT_EQ(state.power_limited(), 2U);
  EXPECT_EQ(state.too_hot(), 1U);
}

TEST(GpuState, EnergyThatBeginsAnewOrIsNotReportedIsUnknown) {
  GpuState state;
  state.add(sample(0, 1'000'000, 1000));
  GpuState later;
  later.add(sample(kGpuSecond, 5'000, 1000));
  state.add(later);
  EXPECT_FALSE(state.watts());
  GpuState none;
  none.add(sample(0, 0, ev::kNoId));
  none.add(sample(kGpuSecond, 0, ev::kNoId));
  EXPECT_FALSE(none.watts());
  EXPECT_FALSE(none.sm_mhz());
  EXPECT_EQ(none.samples(), 2U);
}

/// Ten steps of a second and 4,000 tokens on two ranks, at 300 and 500 W; `samples`: of rank 1 too.
store::Store& sampled_run(RunBuilder& run, bool samples, bool paused = false) {
  for (std::uint32_t step = 0; step < 10; ++step) {
    const std::int64_t at = step * kGpuSecond;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.instant(rank, at, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 10, at + kGpuSecond / 2, EventKind::module_begin, StreamId::compute, 1, step);
      if (rank == 0 || samples)
        run.instant(rank, at + kGpuSecond / 2, EventKind::gpu_sample, StreamId::host, 1400, ev::kNoId,
                    ev::kNoId, 0, 1'000'000 + step * (rank == 0 ? 300'000 : 500'000), kGpuSecond);
      if (paused && step == 4)
        run.span(rank, at + kGpuSecond / 2, at + kGpuSecond / 2 + 1000, EventKind::paused_begin,
                 StreamId::host, 1);
      run.instant(rank, at + kGpuSecond - 1, EventKind::step_end, StreamId::host, step, ev::kNoId, ev::kNoId,
                  0, 4000);
    }
  }
  return run.build();
}

TEST(GpuState, TokensPerJouleAreTokensPerSecondOverTheSumOfPowers) {
  RunBuilder run(2);
  const Summary summary = summarize(sampled_run(run, true));
  ASSERT_TRUE(summary.energy);
  EXPECT_DOUBLE_EQ(summary.energy->watts, 800);
  ASSERT_TRUE(summary.tokens_per_s);
  EXPECT_DOUBLE_EQ(summary.energy->tokens_per_joule.value(), *summary.tokens_per_s / 800);
  EXPECT_NEAR(summary.energy->tokens_per_joule.value(), 5, 1e-6);
  EXPECT_EQ(summary.ranks[1].gpu_state.samples(), 9U) << "the first step is warm-up";
}

TEST(GpuState, WithoutARanksSamplesOrWithAPauseThereIsNoEnergy) {
  RunBuilder one(2);
  EXPECT_FALSE(summarize(sampled_run(one, false)).energy);
  RunBuilder paused(2);
  EXPECT_FALSE(summarize(sampled_run(paused, true, true)).energy);
}

}  // namespace
}  // namespace shardscope::analysis
