// The bound on the error of times in a range: the largest of what applies there, and of nothing else.
#include "app/store/clock_residuals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "app/store/store.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::store {
namespace {

TEST(ClockResiduals, OfARangeAreThoseOfTheChunksThatItMeets) {
  ClockResiduals residuals;
  EXPECT_EQ(residuals.largest(0, 1000), std::nullopt);
  residuals.add(0, 90, 35);
  residuals.add(100, 190, 91);
  residuals.add(200, 290, 20);
  residuals.add(300, 390, 10);
  EXPECT_EQ(residuals.largest(0, 1000), 91);
  EXPECT_EQ(residuals.largest(10, 80), 35);
  EXPECT_EQ(residuals.largest(210, 280), 20);
  EXPECT_EQ(residuals.largest(310, 500), 10) << "nothing is behind it";
  EXPECT_EQ(residuals.largest(190, 290), 91) << "its last event is at 190";
  EXPECT_EQ(residuals.largest(191, 290), 91) << "a span may reach over the edge";
  EXPECT_EQ(residuals.largest(292, 298), 20) << "between two chunks: both";
  EXPECT_EQ(residuals.largest(201, 299), 20);
}

/// However many there are: bounded, never too small, and still of the range.
TEST(ClockResiduals, OfALongRunAreNeverTooSmall) {
  ClockResiduals residuals;
  std::mt19937 random(3);
  std::vector<std::int64_t> each;
  constexpr std::int64_t kLength = 100;
  constexpr std::int64_t kChunks = 20'000;
  for (std::int64_t i = 0; i < kChunks; ++i) {
    // Crude at the beginning, fine later, as a clock gets known.
    each.push_back(i < kChunks / 4 ? 1'000'000
                                   : std::uniform_int_distribution<std::int64_t>(100, 900)(random));
    residuals.add(i * kLength, i * kLength + 90, each.back());
  }
  for (int i = 0; i < 1000; ++i) {
    const auto at = [&] { return std::uniform_int_distribution<std::int64_t>(0, kChunks - 1)(random); };
    const auto [first, last] = std::minmax({at(), at()});
    const std::int64_t truth = *std::max_element(each.begin() + first, each.begin() + last + 1);
    EXPECT_GE(residuals.largest(first * kLength, last * kLength + 90), truth);
  }
  EXPECT_LT(*residuals.largest(kChunks / 2 * kLength, kChunks * kLength), 1'000)
      << "not that of the beginning";
}

TEST(ClockResiduals, AStoreTellsThemByRankAndRunTime) {
  Store store;
  std::uint64_t sequence = 0;
  for (const std::int64_t residual : {35'000, 91'000, 20'000}) {
    ChunkBuilder builder(0, sequence);
    builder.chunk.clock_offset_ns = 7'000'000;
    builder.chunk.clock_residual_ns = residual;
    const auto begin = static_cast<std::int64_t>(sequence) * 1000;
    store.ingest(builder.host(begin, ev::EventKind::tokens).host(begin + 900, ev::EventKind::tokens).chunk);
    ++sequence;
  }
  ASSERT_EQ(store.origin_ns(), 7'000'000);
  EXPECT_EQ(store.ranks()[0].clock_residual_ns, 20'000) << "of the newest offset";
  EXPECT_EQ(store.ranks()[0].largest_clock_residual_ns, 91'000);
  EXPECT_EQ(store.largest_clock_residual(0, 100, 800), 35'000);
  EXPECT_EQ(store.largest_clock_residual(0, 2100, 2800), 20'000);
  EXPECT_EQ(store.largest_clock_residual(0, Store::kBegin, Store::kEnd), 91'000);
  EXPECT_EQ(store.largest_clock_residual(1, 0, 1000), 0) << "no such rank";
}

}  // namespace
}  // namespace shardscope::store
