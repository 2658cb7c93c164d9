// Which parameter a checked gradient belongs to: each element of a partition, by the definition of the
// layouts.
#include "runtime/plan/checked_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/plan/param_groups.h"

namespace shardscope::plan {
namespace {

constexpr std::int64_t kPadding = -1;

/// By element of the owned range: the parameter it is of, or padding. From the offsets of the layouts alone.
std::vector<std::int64_t> params_of_elems(const Ownership& ownership, std::uint32_t rank) {
  std::vector<std::int64_t> of(static_cast<std::size_t>(ownership.owned_elems()), kPadding);
  if (ownership.stage() == 3) {
    const ShardLayout& shards = ownership.shards();
    for (const ParamId param : shards.order) {
      const ParamPartition& partition = shards.partitions[raw(param)];
      for (std::int64_t i = 0; i < partition.shard_elems; ++i) {
        const std::int64_t place = shards.shard_offset[raw(param)] + i;
        if (place < ownership.owned_elems() && rank * partition.shard_elems + i < partition.elems)
          of[static_cast<std::size_t>(place)] = raw(param);
      }
    }
    return of;
  }
  const FlatLayout& flat = ownership.flat();
  const std::uint32_t part = ownership.stage() == 0 ? 0 : rank;
  for (std::size_t i = 0; i < flat.intervals.size(); ++i) {
    const Range owned = flat.intervals[i].owned;
    for (std::int64_t k = owned.begin; k < owned.end; ++k) {
      const std::int64_t place = flat.sub_partition_begin(i, part) + k - owned.begin;
      for (const ParamId param : flat.order) {
        const std::int64_t begin = flat.param_offset[raw(param)];
        if (place >= begin && place < begin + flat.elems_of(param))
          of[static_cast<std::size_t>(k)] = raw(param);
      }
    }
  }
  return of;
}

struct Case {
  const char* name;
  std::uint32_t stage;
  bool groups, round_robin;
  std::int64_t legacy;  ///< elements of a communication; 0: not that layout
};
constexpr Case kCases[] = {
    {"whole", 0, false, false, 0},           {"flat", 1, false, false, 0},  {"groups", 2, true, false, 0},
    {"round robin", 2, false, true, 0},      {"first", 1, true, false, 40}, {"shards", 3, false, false, 0},
    {"shards of groups", 3, true, false, 0},
};

TEST(CheckedGradients, EveryElementIsItsParameters) {
  std::mt19937 random(7);
  for (const Case& one : kCases) {
    for (const std::uint32_t world : {1U, 2U, 3U, 5U}) {
      SCOPED_TRACE(testing::Message() << one.name << ", world " << world);
      ModelPlan model = build_model_plan(named_model("mlp"));
      if (one.groups) {
        const std::vector<ParamGroupRule> rules{{"bias", {"*.bias"}, {}, {}}, {"rest", {}, {}, {}}};
        assign_param_groups(model, rules);
      }
      ZeroConfig zero;
      zero.stage = one.stage;
      zero.round_robin_gradients = one.round_robin;
      if (one.legacy > 0) zero.max_elements_per_comm = one.legacy;
      const Ownership ownership(model, zero, world, one.stage == 3 ? 8 : 1);
      std::vector<ParamId> backward;
      for (const ParamPlan& param : model.params) backward.push_back(param.id);
      std::shuffle(backward.begin(), backward.end(), random);
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const std::vector<std::int64_t> expected = params_of_elems(ownership, rank);
        const auto elems = static_cast<std::int64_t>(expected.size());
        for (const Range checked : {Range{0, elems}, Range{elems / 3, elems - elems / 4}, Range{5, 5}}) {
          std::vector<std::int64_t> found(expected.size(), kPadding);
          std::uint32_t last = 0;
          for (const CheckedGradient& gradient : checked_gradients(ownership, rank, checked, backward)) {
            EXPECT_EQ(backward.at(gradient.position), gradient.param);
            EXPECT_GE(gradient.position, last);
            last = gradient.position;
            ASSERT_LT(gradient.owned.begin, gradient.owned.end);
            for (std::int64_t i = gradient.owned.begin; i < gradient.owned.end; ++i)
              found.at(static_cast<std::size_t>(i)) = raw(gradient.param);
          }
          for (std::int64_t i = 0; i < elems; ++i) {
            const bool is_checked = i >= checked.begin && i < checked.end;
            ASSERT_EQ(found[static_cast<std::size_t>(i)],
                      is_checked ? expected[static_cast<std::size_t>(i)] : kPadding)
                << "element " << i << " of rank " << rank;
          }
        }
      }
    }
  }
}

TEST(CheckedGradients, AParameterWithoutAGradientIsNotLookedAt) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  const Ownership ownership(model, ZeroConfig{}, 1);
  const std::vector<CheckedGradient> found =
      checked_gradients(ownership, 0, {0, ownership.owned_elems()}, {ParamId{2}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].param, ParamId{2});
  EXPECT_EQ(found[0].owned.size(), model.params[2].elems);
}

// The first by position, its elements of all its places, and each other parameter once.
TEST(CheckedGradients, TheFirstIsNamedAndTheOthersAreCounted) {
  NotFiniteGradients none;
  none.add({ParamId{4}, 0, {0, 8}}, 0, 0);
  EXPECT_FALSE(none.first());
  EXPECT_EQ(none.other_params(), 0);

  NotFiniteGradients some;
  some.add({ParamId{4}, 0, {8, 16}}, 0, 0);
  some.add({ParamId{3}, 1, {0, 4}}, 2, 0);
  some.add({ParamId{3}, 1, {20, 24}}, 1, 3);
  some.add({ParamId{2}, 2, {4, 8}}, 0, 0);
  some.add({ParamId{1}, 3, {16, 18}}, 0, 2);
  some.add({ParamId{1}, 3, {24, 26}}, 0, 2);
  some.add({ParamId{0}, 4, {18, 20}}, 1, 0);
  ASSERT_TRUE(some.first());
  EXPECT_EQ(some.first()->param, ParamId{3});
  EXPECT_EQ(some.first()->position, 1U);
  EXPECT_EQ(some.first()->infinite, 3);
  EXPECT_EQ(some.first()->nan, 3);
  EXPECT_EQ(some.other_params(), 2);
}

}  // namespace
}  // namespace shardscope::plan
