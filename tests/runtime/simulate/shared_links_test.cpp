// Transfers that share links, against closed forms and against a fluid model in small steps.
#include "runtime/simulate/shared_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace shardscope::simulate {
namespace {

using Links = std::vector<std::uint32_t>;

struct Given {
  std::int64_t begin_ns;
  std::int64_t alone_ns;
  Links links;
};

/// Ends of the transfers, by their number.
std::vector<std::int64_t> ends_of(const std::vector<Given>& given, std::size_t links = 4) {
  SharedLinks shared(links);
  for (std::size_t i = 0; i < given.size(); ++i)
    shared.add(i, given[i].begin_ns, given[i].alone_ns, given[i].links);
  std::vector<std::int64_t> ends(given.size(), -1);
  std::int64_t before = 0;
  while (const auto end = shared.next()) {
    EXPECT_GE(end->ns, before);
    before = end->ns;
    ends[end->key] = end->ns;
  }
  return ends;
}

using Ends = std::vector<std::int64_t>;

TEST(SharedLinks, AloneATransferTakesItsOwnTime) {
  EXPECT_EQ(ends_of({{10, 1000, {0}}}), (Ends{1010}));
  EXPECT_EQ(ends_of({{10, 1000, {0}}, {1010, 7, {0}}, {5000, 0, {0}}}), (Ends{1010, 1017, 5000}));
}

TEST(SharedLinks, TwoEqualOnesTogetherTakeTwiceAsLong) {
  EXPECT_EQ(ends_of({{10, 1001, {0}}, {10, 1001, {0}}}), (Ends{2012, 2012}));
  EXPECT_EQ(ends_of({{0, 999, {1}}, {0, 999, {1}}, {0, 999, {1}}}), (Ends{2997, 2997, 2997}));
}

TEST(SharedLinks, StaggeredOnesShareOnlyWhileBothAreThere) {
  // The first has 600 left when the second comes, which take both until 1600; 400 are left of the second.
  EXPECT_EQ(ends_of({{0, 1000, {0}}, {400, 1000, {0}}}), (Ends{1600, 2000}));
  // A short one inside a long one costs it what it itself needs.
  EXPECT_EQ(ends_of({{0, 1000, {0}}, {300, 100, {0}}}), (Ends{1100, 500}));
  // One that begins when another ends shares nothing with it.
  EXPECT_EQ(ends_of({{0, 500, {0}}, {500, 500, {0}}}), (Ends{500, 1000}));
}

TEST(SharedLinks, OtherLinksAreNotDisturbed) {
  EXPECT_EQ(ends_of({{0, 1000, {0}}, {0, 1000, {1}}}), (Ends{1000, 1000}));
  // Over several links at the pace of the busiest: those of one rank slow a group's transfer down.
  EXPECT_EQ(ends_of({{0, 1000, {0, 1, 2}}, {0, 100, {2}}, {0, 100, {3}}}), (Ends{1100, 200, 100}));
}

TEST(SharedLinks, AChainOfGroupsIsSharedPairwise) {
  // b shares link 1 with a and link 2 with c: two on each.
  EXPECT_EQ(ends_of({{0, 600, {0, 1}}, {0, 600, {1, 2}}, {0, 600, {2, 3}}}), (Ends{1200, 1200, 1200}));
}

TEST(SharedLinks, OrderOfAddingChangesNothing) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Given> given;
    for (int i = 0; i < 12; ++i) {
      Links links;
      for (std::uint32_t link = 0; link < 4; ++link) {
        if (random() % 2 == 0) links.push_back(link);
      }
      given.push_back(
          {static_cast<std::int64_t>(random() % 2000), static_cast<std::int64_t>(random() % 900), links});
    }
    const Ends ends = ends_of(given);
    std::vector<Given> reversed(given.rbegin(), given.rend());
    Ends again = ends_of(reversed);
    std::reverse(again.begin(), again.end());
    EXPECT_EQ(again, ends);
    // The same in steps of a nanosecond, in doubles: within one for each change of pace on the way.
    std::vector<double> left;
    for (const Given& g : given) left.push_back(static_cast<double>(g.alone_ns));
    std::vector<double> ended(given.size(), -1);
    for (std::int64_t now = 0; now < 40000; ++now) {
      std::vector<int> on(4, 0);
      std::vector<bool> there(given.size(), false);
      for (std::size_t i = 0; i < given.size(); ++i) {
        there[i] = ended[i] < 0 && now >= given[i].begin_ns;
        if (there[i] && left[i] <= 1e-9) {
          ended[i] = static_cast<double>(now);
          there[i] = false;
        }
        if (!there[i]) continue;
        for (const std::uint32_t link : given[i].links) ++on[link];
      }
      for (std::size_t i = 0; i < given.size(); ++i) {
        int most = 1;
        for (const std::uint32_t link : given[i].links) most = std::max(most, on[link]);
        if (there[i]) left[i] -= 1.0 / most;
      }
    }
    for (std::size_t i = 0; i < given.size(); ++i)
      EXPECT_NEAR(static_cast<double>(ends[i]), ended[i], 12) << "round " << round << " transfer " << i;
  }
}

TEST(SharedLinks, WhatIsOverStaysOver) {
  SharedLinks shared(1);
  const Links links{0};
  shared.add(1, 0, 100, links);
  EXPECT_THROW(shared.add(1, 0, 100, links), std::logic_error);
  ASSERT_TRUE(shared.next().has_value());
  // What begins in the past cannot change it, and has had the link for itself until now.
  shared.add(2, 60, 100, links);
  shared.add(3, 90, 5, links);
  shared.add(4, 100, 60, links);
  EXPECT_EQ(shared.next()->ns, 95);
  EXPECT_EQ(shared.next()->ns, 220);
  EXPECT_EQ(shared.next()->ns, 220);
  EXPECT_FALSE(shared.next().has_value());
}

}  // namespace
}  // namespace shardscope::simulate
