// Findings that are a note or a warning by what they cost.
#include <gtest/gtest.h>

#include <cstdint>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/analysis/ten_steps.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Of 40 kB that a rank gathers in a step some were in vain: in each step, or in one of ten.
TEST(FindingThresholds, UnusedPrefetchesWarnByWhatTheyMoved) {
  for (const bool often : {false, true}) {
    RunBuilder run(1);
    add_steps(run, 1);
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      const std::int64_t at = step * kStepLength + kMs;
      run.span(0, at, at + kMs, EventKind::collective_begin, StreamId::gather, 2 * step, 2 * step, kGatherOp,
               9000, 36000);
      if (!often && step != 5) continue;
      run.instant(0, at + kMs, EventKind::prefetch_issued, StreamId::host, 2 * step + 1, 1);
      run.span(0, at + kMs, at + 2 * kMs, EventKind::collective_begin, StreamId::gather, 2 * step + 1,
               2 * step + 1, kGatherOp, 1000, 4000);
    }
    const auto found = found_in(run.build(), "unused_prefetch");
    ASSERT_TRUE(found);
    // Of the steps after the warm-up.
    EXPECT_EQ(*found->cost_bytes, often ? 4000 : 4000 / 9) << found->evidence;
    EXPECT_EQ(found->severity, often ? ev::Severity::warning : ev::Severity::info) << found->evidence;
  }
}

/// A trace that breaks in one step of ten, which takes so much longer.
TEST(FindingThresholds, AnInvalidatedTraceWarnsByWhatItCosts) {
  for (const std::int64_t longer : {std::int64_t{0}, 5 * kMs, 20 * kMs}) {
    RunBuilder run(1);
    std::int64_t at = 0;
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      const std::int64_t length = kStepLength + (step == 4 || step == 5 ? longer : 0);
      if (step == 4) run.instant(0, at + kMs, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
      run.span(0, at, at + length, EventKind::step_begin, StreamId::host, step);
      run.span(0, at, at + 8 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      at += length;
    }
    const auto found = found_in(run.build(), "trace_invalidated");
    ASSERT_TRUE(found);
    ASSERT_TRUE(found->cost_once_ms) << found->evidence;
    EXPECT_NEAR(*found->cost_once_ms, 2 * static_cast<double>(longer) * 1e-6, 1e-6);
    EXPECT_EQ(found->severity, longer > 0 ? ev::Severity::warning : ev::Severity::info) << found->evidence;
  }
  RunBuilder always(1);
  add_steps(always, 1);
  for (std::uint32_t step = 0; step < kStepCount; ++step)
    always.instant(0, step * kStepLength + kMs, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
  const auto found = found_in(always.build(), "trace_invalidated");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, ev::Severity::warning);
  EXPECT_FALSE(found->cost_once_ms);
}

}  // namespace
}  // namespace shardscope::analysis
