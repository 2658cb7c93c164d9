// Places of one run in another: by step, by rank, by name.
#include "app/gui/model/carried_place.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

const store::Store& slow() {
  static const store::Store store = store::make_synthetic_store({.steps = 4, .compute_gflops = 20});
  return store;
}
const store::Store& fast() {
  static const store::Store store = store::make_synthetic_store({.steps = 6, .compute_gflops = 60});
  return store;
}

TEST(CarriedPlace, ATimeKeepsItsPartOfTheStep) {
  const auto &here = slow().steps()[2], &there = fast().steps()[2];
  ASSERT_NE(here.begin_ns, there.begin_ns);
  EXPECT_EQ(carried_time(slow(), fast(), here.begin_ns), there.begin_ns);
  const std::int64_t quarter = here.begin_ns + (here.end_ns - here.begin_ns) / 4;
  EXPECT_NEAR(static_cast<double>(carried_time(slow(), fast(), quarter)),
              static_cast<double>(there.begin_ns) + static_cast<double>(there.end_ns - there.begin_ns) / 4,
              2);
  const std::int64_t back = carried_time(fast(), slow(), carried_time(slow(), fast(), quarter));
  EXPECT_NEAR(static_cast<double>(back), static_cast<double>(quarter), 10) << "and it is found again";
}

TEST(CarriedPlace, BeyondTheCommonStepsATimeKeepsItsDistanceFromThem) {
  // The fast run goes on for two steps that the slow one lacks.
  const auto &last = fast().steps()[3], &more = fast().steps()[5];
  EXPECT_EQ(carried_time(fast(), slow(), more.end_ns) - slow().steps()[3].end_ns, more.end_ns - last.end_ns);
  const auto &first = fast().steps()[0], &of_slow = slow().steps()[0];
  EXPECT_EQ(carried_time(fast(), slow(), first.begin_ns - 7), of_slow.begin_ns - 7);
}

TEST(CarriedPlace, ARunWithoutStepsHasTheSameTimes) {
  const store::Store none;
  EXPECT_EQ(carried_time(fast(), none, 1234), 1234);
  EXPECT_EQ(carried_time(none, fast(), 1234), 1234);
}

TEST(CarriedPlace, ARangeIsNeverEmpty) {
  const auto& step = slow().steps()[1];
  const TimeRange range{step.begin_ns, step.begin_ns + 1};
  EXPECT_GT(carried_range(slow(), fast(), range).length(), 0);
  EXPECT_GT(carried_range(slow(), fast(), {step.begin_ns, step.begin_ns}).length(), 0);
}

/// Overflow would be found by the sanitizers.
TEST(CarriedPlace, AnyTimeCanBeCarried) {
  const std::int64_t first = carried_time(slow(), fast(), INT64_MIN);
  const std::int64_t last = carried_time(slow(), fast(), INT64_MAX);
  EXPECT_LT(first, 0);
  EXPECT_GT(last, fast().end_ns());
  EXPECT_GT(carried_range(slow(), fast(), {INT64_MIN, INT64_MAX}).length(), 0);
}

TEST(CarriedPlace, ParametersAndModulesAreFoundByName) {
  const store::Store two = store::make_synthetic_store({.layers = 2});
  const store::Store four = store::make_synthetic_store({.layers = 4});
  const auto last = static_cast<std::uint32_t>(two.tables().params.size() - 1);
  const std::uint32_t there = carried_param(two, four, last);
  ASSERT_NE(there, ev::kNoId);
  EXPECT_NE(there, last) << "the ids differ";
  EXPECT_EQ(four.tables().params[there].name, two.tables().params[last].name);
  EXPECT_EQ(param_named(four, four.tables().params[there].name), there);
  std::uint32_t missing = 0;
  while (param_named(two, four.tables().params[missing].name) != ev::kNoId) ++missing;
  EXPECT_EQ(carried_param(four, two, missing), ev::kNoId) << "a layer that the other model lacks";
  const auto module = static_cast<std::uint32_t>(two.tables().modules.size() - 1);
  const std::uint32_t same = carried_module(two, four, module);
  ASSERT_NE(same, ev::kNoId);
  EXPECT_EQ(four.tables().modules[same].path, two.tables().modules[module].path);
}

TEST(CarriedPlace, WhatTheOtherRunLacksIsNotSelectedInIt) {
  const store::Store small = store::make_synthetic_store({.world = 2});
  Selection selection;
  selection.kind = SelectionKind::rank;
  selection.rank = 3;
  EXPECT_FALSE(carried_selection(slow(), small, selection));
  selection.rank = 1;
  ASSERT_TRUE(carried_selection(slow(), small, selection));
  EXPECT_EQ(carried_selection(slow(), small, selection)->rank, 1U);
  selection = {};
  selection.kind = SelectionKind::step;
  selection.step = fast().steps()[5].step;
  EXPECT_FALSE(carried_selection(fast(), slow(), selection));
  selection.kind = SelectionKind::span;
  selection.span = store::Span{};
  EXPECT_FALSE(carried_selection(fast(), slow(), selection)) << "a span is of its run";
}

}  // namespace
}  // namespace shardscope::gui
