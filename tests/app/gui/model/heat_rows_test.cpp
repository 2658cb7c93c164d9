// Low rows of very many ranks: what they say, and that each is read although a frame has no time for all.
#include "app/gui/model/heat_rows.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr TimeRange kRange{0, 1000};
constexpr std::size_t kColumns = 10;

/// Of 1000 ns rank r computes for the first 100 r and waits until 600.
RunBuilder staircase(std::uint32_t ranks) {
  RunBuilder run(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t until = 100 * rank;
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    if (until > 0) run.span(rank, 0, until, EventKind::module_begin, StreamId::compute, 1);
    run.span(rank, until, 600, EventKind::fetch_wait_begin, StreamId::compute, 0);
  }
  return run;
}

std::vector<std::uint32_t> one(std::uint32_t rank) { return {rank}; }

TEST(HeatRows, AreSharesOfTheColumnsAndTheMeanOfSeveralRanks) {
  RunBuilder run = staircase(4);
  const store::Store& store = run.build();
  HeatRows rows;
  rows.begin_frame(std::nullopt);
  const HeatRow three = rows.of(store, one(3), kRange, kColumns);
  ASSERT_EQ(three.columns.size(), kColumns);
  for (std::size_t i = 0; i < kColumns; ++i) {
    EXPECT_FLOAT_EQ(three.columns[i].busy, i < 6 ? 1 : 0) << i;
    EXPECT_FLOAT_EQ(three.columns[i].waited, i >= 3 && i < 6 ? 1 : 0) << i;
  }
  EXPECT_EQ(three.columns[0].most, EventKind::module_begin);
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};
  const HeatRow& mean = rows.of(store, all, kRange, kColumns);
  EXPECT_FLOAT_EQ(mean.columns[0].waited, 0.25F);  // rank 0
  EXPECT_FLOAT_EQ(mean.columns[1].waited, 0.5F);
  EXPECT_FLOAT_EQ(mean.columns[2].waited, 0.75F);
  EXPECT_FLOAT_EQ(mean.columns[2].busy, 1);
  EXPECT_FLOAT_EQ(mean.columns[6].busy, 0);
  EXPECT_FALSE(rows.behind());
}

/// Frames without any time read one row each, and every row comes to its turn; meanwhile it is of its own
/// range.
TEST(HeatRows, ThatAFrameHasNoTimeForAreReadInTheNext) {
  RunBuilder run = staircase(5);
  const store::Store& store = run.build();
  HeatRows rows;
  const auto frame = [&](TimeRange range) {
    rows.begin_frame(0ns);
    std::size_t fresh = 0;
    for (std::uint32_t rank = 0; rank < 5; ++rank)
      fresh += rows.of(store, one(rank), range, kColumns).range == range;
    return fresh;
  };
  for (std::size_t n = 1; n <= 5; ++n) {
    EXPECT_EQ(frame(kRange), n);
    EXPECT_EQ(rows.behind(), n < 5);
  }
  constexpr TimeRange kNearer{0, 500};
  for (std::size_t n = 1; n <= 5; ++n) {
    EXPECT_EQ(frame(kNearer), n);
    EXPECT_EQ(rows.behind(), n < 5);
  }
}

/// While events come every row is out of date in every frame: none is left out for the others.
TEST(HeatRows, TakeTurnsWhileEventsCome) {
  RunBuilder run = staircase(5);
  HeatRows rows;
  std::vector<std::size_t> read(5);
  std::vector<float> before(5, -1);
  for (int n = 0; n < 20; ++n) {
    // More computation at the end, so that a row that is read again differs.
    for (std::uint32_t rank = 0; rank < 5; ++rank)
      run.span(rank, 1000 + 10 * n, 1001 + 10 * n, EventKind::module_begin, StreamId::compute, 1);
    const store::Store& store = run.build();
    rows.begin_frame(0ns);
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const HeatRow& row = rows.of(store, one(rank), {1000, 2000}, 1);
      const float busy = row.columns.empty() ? -1 : row.columns[0].busy;
      read[rank] += busy != before[rank] ? 1 : 0;
      before[rank] = busy;
    }
    EXPECT_TRUE(rows.behind());
  }
  for (const std::size_t times : read) EXPECT_EQ(times, 4U);
}

TEST(HeatRows, ARowThatIsNoLongerDrawnStopsNoOther) {
  RunBuilder run = staircase(5);
  const store::Store& store = run.build();
  HeatRows rows;
  rows.begin_frame(0ns);
  for (std::uint32_t rank = 0; rank < 5; ++rank) (void)rows.of(store, one(rank), kRange, kColumns);
  // Rank 1 is where the next frame would go on.
  for (int n = 0; n < 3; ++n) {
    rows.begin_frame(0ns);
    for (std::uint32_t rank = 2; rank < 5; ++rank) (void)rows.of(store, one(rank), kRange, kColumns);
  }
  rows.begin_frame(0ns);
  for (std::uint32_t rank = 2; rank < 5; ++rank)
    EXPECT_EQ(rows.of(store, one(rank), kRange, kColumns).columns.size(), kColumns) << rank;
}

/// Where a frame takes long to draw, rows are read between the frames, and the next one shows them all.
TEST(HeatRows, AreReadBetweenTwoFrames) {
  RunBuilder run = staircase(5);
  const store::Store& store = run.build();
  HeatRows rows;
  const auto frame = [&](std::uint32_t ranks) {
    rows.begin_frame(0ns);
    std::size_t fresh = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      fresh += rows.of(store, one(rank), kRange, kColumns).columns.size() == kColumns;
    return fresh;
  };
  EXPECT_EQ(frame(5), 1U);
  EXPECT_TRUE(rows.catch_up(store, 0ns));  // one row however little time there is
  EXPECT_FALSE(rows.catch_up(store, 10s));
  EXPECT_EQ(frame(5), 5U);
  EXPECT_FALSE(rows.behind());
  EXPECT_FLOAT_EQ(rows.of(store, one(3), kRange, kColumns).columns[3].waited, 1);
  // New events leave rows outdated, which is no reason to read without pause; nor are rows that are not
  // drawn.
  run.span(0, 1000, 1001, EventKind::module_begin, StreamId::compute, 1);
  const store::Store& later = run.build();
  rows.begin_frame(0ns);
  for (std::uint32_t rank = 0; rank < 5; ++rank) (void)rows.of(later, one(rank), kRange, kColumns);
  EXPECT_TRUE(rows.behind());
  EXPECT_FALSE(rows.catch_up(later, 0ns));
}

}  // namespace
}  // namespace shardscope::gui
