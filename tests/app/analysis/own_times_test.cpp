// Own times of a recording that keeps every event: drifts are found in it as in one with limits.
#include "app/analysis/own_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Six ranks, 300 steps of about 4 s, of which each computes 3 s and waits the rest; from step 150 on rank
/// 1 computes 15 % longer.
store::Store& drifting(RunBuilder& run, bool ended, double step_s = 4) {
  std::mt19937 random(1);
  const auto step_ns = static_cast<std::int64_t>(step_s * 1e9);
  for (std::uint32_t step = 0; step < 300; ++step) {
    const std::int64_t at = step * step_ns;
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      const double longer = rank == 1 && step >= 150 ? 1.15 : 1;
      const auto computed = at + static_cast<std::int64_t>(static_cast<double>(step_ns) * 0.75 * longer) +
                            static_cast<std::int64_t>(random() % 1'000'000);
      run.span(rank, at, computed, EventKind::module_begin, StreamId::compute, 1, step);
      run.span(rank, computed, at + step_ns - 1000, EventKind::collective_begin, StreamId::reduce, step, 0,
               kGatherOp, 1000, 4000);
      run.span(rank, at, at + step_ns - 10, EventKind::step_begin, StreamId::host, step);
    }
  }
  store::Store& store = run.build();
  for (store::RankRow row : std::vector(store.ranks().begin(), store.ranks().end())) {
    row.finished = ended;
    store.set_rank(row);
  }
  return store;
}

TEST(OwnTimes, ARecordingOfEveryEventOfHoursNamesARankThatBecameSlow) {
  RunBuilder run(6, 2);
  const Summary summary = summarize(drifting(run, true));
  ASSERT_TRUE(summary.rank_drifts);
  ASSERT_EQ(summary.rank_drifts->size(), 1U);
  const RankDrift& drift = summary.rank_drifts->front();
  EXPECT_EQ(drift.rank, 1U);
  EXPECT_EQ(drift.shape, DriftShape::at_once);
  EXPECT_NEAR(drift.since_step, 150, 1);
  ASSERT_TRUE(drift.excess_pct);
  EXPECT_NEAR(drift.excess_pct->middle, 15, 0.5);
}

TEST(OwnTimes, OfAShortOrARunningRunAreNotComputed) {
  RunBuilder running(6, 2), brief(6, 2);
  EXPECT_FALSE(summarize(drifting(running, false)).rank_drifts);
  EXPECT_FALSE(summarize(drifting(brief, true, 1)).rank_drifts) << "5 minutes";
}

}  // namespace
}  // namespace shardscope::analysis
