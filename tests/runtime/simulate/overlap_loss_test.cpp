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

TEST(OverlapLoss, IsAPartOfWhatKernelsAndATransferHaveInCommon) {
  OverlapLoss loss(0.5);
  loss.kernel(0, 10);
  loss.kernel(10, 20);  // without a gap
  loss.transfer_begins(15);
  loss.kernel(20, 40);
  loss.transfer_ends(15, 35);
  EXPECT_EQ(loss.deferred_at(40), 0.5 * 20);
  EXPECT_EQ(loss.deferred_at(40), 0) << "it is paid once";
}

/// A kernel beside a gather that the next kernel waits for could have taken longer without delaying anything.
TEST(OverlapLoss, IdleTimePaysFirst) {
  OverlapLoss loss(0.4);
  loss.transfer_begins(0);
  loss.kernel(0, 10);
  loss.transfer_ends(0, 100);
  EXPECT_EQ(loss.deferred_at(100), 0);
  OverlapLoss partly(0.4);
  partly.transfer_begins(0);
  partly.kernel(0, 10);
  partly.transfer_ends(0, 12);
  EXPECT_DOUBLE_EQ(partly.deferred_at(12), 2);  // of 4, two were idle
  OverlapLoss between(0.5);
  between.transfer_begins(0);
  between.kernel(0, 10);
  between.kernel(13, 23);
  between.transfer_ends(0, 23);
  EXPECT_DOUBLE_EQ(between.deferred_at(23), (5 - 3) + 5);
}

/// Two collectives at once take no more from a kernel than one.
TEST(OverlapLoss, TransfersBesideOneAnotherCountOnce) {
  OverlapLoss loss(1);
  loss.kernel(0, 100);
  loss.transfer_begins(10);
  loss.transfer_begins(20);
  loss.transfer_ends(20, 50);
  loss.transfer_ends(10, 90);
  loss.transfer_begins(95);
  loss.transfer_ends(95, 120);  // the kernel's rest
  EXPECT_EQ(loss.deferred_at(100), 80 + 5);
}

TEST(OverlapLoss, NothingBesideATransferCostsNothing) {
  OverlapLoss loss(1);
  loss.kernel(0, 10);
  loss.transfer_begins(10);
  loss.transfer_ends(10, 30);
  EXPECT_EQ(loss.deferred_at(10), 0);
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
