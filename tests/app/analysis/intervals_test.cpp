#include "app/analysis/intervals.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace shardscope::analysis {
namespace {

constexpr int kSpan = 200;

/// The oracle: a set of unit cells.
std::bitset<kSpan> cells(const std::vector<Interval>& intervals) {
  std::bitset<kSpan> set;
  for (const Interval& i : intervals) {
    for (std::int64_t t = i.begin; t < i.end; ++t) set.set(static_cast<std::size_t>(t));
  }
  return set;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
  std::uniform_int_distribution<std::int64_t> at(0, kSpan), count(0, 12), length(-2, 25);
  std::vector<Interval> intervals;
  for (std::int64_t n = count(random); n > 0; --n) {
    const std::int64_t begin = at(random);
    intervals.push_back({begin, std::min<std::int64_t>(begin + length(random), kSpan)});
  }
  return intervals;
}

TEST(IntervalSet, AgreesWithUnitCellsOnRandomSets) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const auto a = random_intervals(random), b = random_intervals(random);
    const IntervalSet sa(a), sb(b);
    ASSERT_EQ(sa.length(), static_cast<std::int64_t>(cells(a).count()));
    ASSERT_EQ(cells(sa.unite(sb).intervals()), cells(a) | cells(b));
    ASSERT_EQ(cells(sa.subtract(sb).intervals()), cells(a) & ~cells(b));
    ASSERT_EQ(cells(sa.clip(40, 90).intervals()), cells(a) & cells({{40, 90}}));
  }
}

TEST(IntervalSet, IsDisjointAndAscending) {
  const IntervalSet set({{10, 20}, {5, 12}, {20, 22}, {30, 30}, {40, 35}});
  ASSERT_EQ(set.intervals().size(), 1U);
  EXPECT_EQ(set.intervals()[0].begin, 5);
  EXPECT_EQ(set.intervals()[0].end, 22);
}

}  // namespace
}  // namespace shardscope::analysis
