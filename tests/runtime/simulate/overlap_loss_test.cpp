// What kernels lose to collectives beside them: spans by hand, and whole steps against what they have of
// both.
#include "runtime/simulate/overlap_loss.h"

#include <gtest/gtest.h>

#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using engine::testing::model_named;

TEST(OverlapLoss, CountsWhatKernelsAndATransferHaveInCommon) {
  OverlapLoss loss;
  loss.kernel(0, 10);
  loss.kernel(10, 20);  // without a gap
  loss.kernel(30, 40);
  loss.transfer_begins(15);
  EXPECT_EQ(loss.transfer_ends(15, 35), 5 + 5);
}

/// What has been counted for one is still there for another that began before.
TEST(OverlapLoss, TransfersBesideOneAnotherEachCount) {
  OverlapLoss loss;
  loss.kernel(0, 100);
  loss.transfer_begins(10);
  loss.transfer_begins(20);
  EXPECT_EQ(loss.transfer_ends(20, 50), 30);
  EXPECT_EQ(loss.transfer_ends(10, 90), 80);
  loss.transfer_begins(95);
  EXPECT_EQ(loss.transfer_ends(95, 120), 5);  // the kernel's rest
}

TEST(OverlapLoss, NothingBesideATransferCostsNothing) {
  OverlapLoss loss;
  loss.kernel(0, 10);
  loss.transfer_begins(10);
  EXPECT_EQ(loss.transfer_ends(10, 30), 0);
}

std::int64_t step_of(std::uint32_t ranks, int stage, bool overlap, double slowdown) {
  SimulationOptions options;
  options.hardware = round_hardware();
  options.hardware.overlap_slowdown = slowdown;
  Json config = make_config(stage);
  config["zero_optimization"]["overlap_comm"] = overlap;
  Play play(model_named("gpt"), config, ranks, options);
  play.run(3);
  return play.step_ns.back();
}

TEST(OverlapLoss, LengthensOnlyStepsThatOverlap) {
  EXPECT_EQ(step_of(1, 3, true, 0.5), step_of(1, 3, true, 0));
  EXPECT_EQ(step_of(2, 0, false, 0.5), step_of(2, 0, false, 0));
  const std::int64_t alone = step_of(2, 3, true, 0), quarter = step_of(2, 3, true, 0.25);
  EXPECT_GT(quarter, alone);
  EXPECT_GT(step_of(2, 3, true, 0.5), quarter);
  // Kernels lose a quarter at most of the time that they share, which is no longer than the step.
  EXPECT_LT(quarter, alone + alone / 4);
}

}  // namespace
}  // namespace shardscope::simulate::testing
