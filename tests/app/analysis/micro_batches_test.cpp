// Sizes of micro-batches by hand: padding, and how far ranks are apart.
#include "app/analysis/micro_batches.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// A step of 10 ms on a rank with one micro-batch for each of `sizes`: {samples, tokens, padding}.
struct Size {
  std::uint32_t samples;
  std::int64_t tokens, padding;
};
void add_step(RunBuilder& run, std::uint32_t rank, std::uint32_t step, const std::vector<Size>& sizes) {
  const std::int64_t at = step * 10 * kMs;
  run.span(rank, at, at + 9 * kMs, EventKind::step_begin, StreamId::host, step);
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    const auto micro = static_cast<std::uint32_t>(step * sizes.size() + i);
    run.instant(rank, at + (i + 1) * kMs, EventKind::micro_batch, StreamId::host, micro, step,
                sizes[i].samples, 0, sizes[i].tokens, sizes[i].padding);
  }
}

TEST(MicroBatches, PaddingIsOfAllPositionsAndUnevennessOfEachMicroStep) {
  RunBuilder run(2);
  add_step(run, 0, 0, {{4, 30, 10}, {4, 16, 0}});
  add_step(run, 1, 0, {{4, 20, 0}, {2, 16, 8}});
  // Of an evaluation: no part of training.
  run.instant(0, 5 * kMs, EventKind::micro_batch, StreamId::host, ev::kNoId, 0, 4, 0, 100, 100);
  const Summary s = summarize(run.build());
  ASSERT_TRUE(s.micro_batches);
  EXPECT_EQ(s.micro_batches->count, 4U);
  EXPECT_EQ(s.micro_batches->tokens, 82);
  EXPECT_EQ(s.micro_batches->padding, 18);
  EXPECT_DOUBLE_EQ(s.micro_batches->padding_pct(), 18);
  EXPECT_TRUE(s.micro_batches->vary());
  EXPECT_EQ(text_of(*s.micro_batches), "2 to 4 samples of 4 to 12 tokens");
  // Micro-step 0: 40 and 20, micro-step 1: 16 and 24. Means 30 and 20, most 40 and 24.
  ASSERT_TRUE(s.uneven_pct);
  EXPECT_NEAR(*s.uneven_pct, 100 * (1 - 50.0 / 64), 1e-9);
  EXPECT_EQ(s.ranks[0].micro_batches->padding, 10);
  EXPECT_EQ(s.ranks[1].micro_batches->tokens, 36);
  const auto written = nlohmann::json::parse(to_json(s));
  EXPECT_EQ(written["micro_batches"]["length"], nlohmann::json({4, 12}));
  EXPECT_NEAR(written["micro_batches"]["uneven_pct"].get<double>(), 21.875, 1e-9);
  EXPECT_EQ(written["ranks"][1]["micro_batches"]["tokens"], 36);
}

// The largest rank of a micro-step that a rank lost is unknown.
TEST(MicroBatches, ALostOneLeavesItsMicroStepOut) {
  RunBuilder run(2);
  add_step(run, 0, 0, {{4, 40, 0}, {4, 16, 0}});
  add_step(run, 1, 0, {{4, 20, 0}});
  const Summary s = summarize(run.build());
  EXPECT_EQ(s.micro_batches->count, 3U);
  EXPECT_NEAR(*s.uneven_pct, 25, 1e-9);
}

TEST(MicroBatches, OfOneSizeDoNotVaryAndWithoutEventsAreUnknown) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) add_step(run, rank, 0, {{4, 48, 0}, {4, 48, 0}});
  const Summary s = summarize(run.build());
  EXPECT_FALSE(s.micro_batches->vary());
  EXPECT_EQ(*s.uneven_pct, 0);
  RunBuilder none(1);
  none.span(0, 0, 9 * kMs, EventKind::step_begin, StreamId::host, 0);
  const Summary unknown = summarize(none.build());
  EXPECT_FALSE(unknown.micro_batches);
  EXPECT_FALSE(unknown.uneven_pct);
  EXPECT_TRUE(nlohmann::json::parse(to_json(unknown))["micro_batches"].is_null());
}

}  // namespace
}  // namespace shardscope::analysis
