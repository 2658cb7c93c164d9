// Tables of two runs by module and rank: what differs is named, what only scatters is not.
#include "app/analysis/compared_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Steps of one rank, each with a forward of module 1 that takes about so many microseconds.
store::Store* forwards(RunBuilder& run, unsigned seed, std::int64_t us) {
  std::mt19937 random(seed);
  std::int64_t at = 0;
  for (std::uint32_t step = 0; step < 30; ++step) {
    const std::int64_t work = (us + static_cast<std::int64_t>(random() % 20)) * 1000;
    run.span(0, at, at + work + 5000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at + 100, at + 100 + work, EventKind::module_begin, StreamId::compute, 1, 0);
    at += work + 10'000;
  }
  return &run.build();
}

TEST(ComparedRows, OfModulesTheOneThatIsSlowerDiffers) {
  RunBuilder first(1, 0), second(1, 0), third(1, 0);
  const store::Store *a = forwards(first, 1, 200), *b = forwards(second, 2, 400),
                     *c = forwards(third, 3, 200);
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const ComparedRows slower = compare_by({a, &sa}, {b, &sb}, CompareBy::module);
  ASSERT_EQ(slower.rows.size(), 1U);
  EXPECT_EQ(slower.rows[0].name, "layer");
  EXPECT_EQ(slower.rows[0].figure, "forward");
  EXPECT_TRUE(slower.rows[0].differs());
  EXPECT_NEAR(slower.rows[0].change(), 0.2, 0.03);
  EXPECT_FALSE(compare_by({a, &sa}, {c, &sc}, CompareBy::module).rows[0].differs());
  const ComparedRows ranks = compare_by({a, &sa}, {b, &sb}, CompareBy::rank);
  ASSERT_FALSE(ranks.rows.empty());
  EXPECT_EQ(ranks.rows[0].figure, "computation");
  EXPECT_TRUE(ranks.rows[0].differs());
  EXPECT_GT(ranks.confidence, 0.95) << "several rows together hold with 95 %";
}

TEST(ComparedRows, WhatWasNotRecordedIsSaid) {
  RunBuilder first(1, 0), second(1, 0);
  const store::Store *a = forwards(first, 1, 200), *b = forwards(second, 2, 200);
  const Summary sa = summarize(*a), sb = summarize(*b);
  const ComparedRows params = compare_by({a, &sa}, {b, &sb}, CompareBy::parameter);
  EXPECT_TRUE(params.rows.empty());
  EXPECT_NE(params.note.find("--detail params"), std::string::npos) << params.note;
  EXPECT_NE(compare_by({a, &sa}, {b, &sb}, CompareBy::memory).note.find("not recorded"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::analysis
