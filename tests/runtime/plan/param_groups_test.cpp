// Parameter groups: who is in which, and layouts that are those of each group alone, one after the other.
#include "runtime/plan/param_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "runtime/plan/ownership.h"
#include "runtime/plan/partition.h"

namespace shardscope::plan {
namespace {

using testing::HasSubstr;

ModelPlan grouped(const std::vector<ParamGroupRule>& rules, const char* name = "mlp") {
  ModelPlan model = build_model_plan(named_model(name));
  assign_param_groups(model, rules);
  return model;
}

std::string refusal(const std::vector<ParamGroupRule>& rules) {
  try {
    (void)grouped(rules);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ParamGroups, TheFirstRuleThatTakesAParameterHasIt) {
  const ModelPlan model =
      grouped({{"no_decay", {"*.bias"}, {}, {}}, {"small", {}, {}, 1}, {"rest", {}, {}, {}}}, "gpt-mini");
  for (const ParamPlan& param : model.params) {
    const bool bias = param.name.ends_with(".bias");
    EXPECT_EQ(param.group, bias ? 0U : param.shape.size() < 2 ? 1U : 2U) << param.name;
  }
  std::vector<std::uint32_t> groups;
  for (const ParamId id : trained_by_group(model)) groups.push_back(model.params[raw(id)].group);
  EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end()));
  EXPECT_EQ(groups.size(), model.params.size());
}

TEST(ParamGroups, WhatIsInNoGroupAndGroupsOfNothingAreRefused) {
  EXPECT_THAT(refusal({{"decay", {}, 2, {}}}), HasSubstr("no group takes parameter "));
  EXPECT_THAT(refusal({{"all", {}, {}, {}}, {"late", {"*.bias"}, {}, {}}}),
              HasSubstr("param_groups[1] (late) takes no trained parameter"));
  EXPECT_EQ(refusal(std::vector<ParamGroupRule>{}), "");
}

/// Sizes and groups, every group with at least one parameter.
struct Drawn {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint32_t> groups;
  std::uint32_t count = 1;
};

Drawn draw(std::mt19937& random) {
  Drawn drawn;
  drawn.count = static_cast<std::uint32_t>(1 + random() % 4);
  for (std::uint32_t i = 0; i < drawn.count + random() % 10; ++i) {
    drawn.sizes.push_back(1 + static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 3000 : 30)));
    drawn.groups.push_back(i < drawn.count ? i : static_cast<std::uint32_t>(random() % drawn.count));
  }
  return drawn;
}

FlatLayout layout_of(const Drawn& drawn, std::uint32_t world, GradientOrder order, std::int64_t limit) {
  return limit == 0 ? make_flat_layout(drawn.sizes, world, order, drawn.groups)
                    : make_legacy_layout(drawn.sizes, world, limit, order, drawn.groups);
}

// The oracle is the layout without groups, of each group's parameters alone.
TEST(ParamGroups, LayoutsAreThoseOfEachGroupAloneOneAfterTheOther) {
  std::mt19937 random(23);
  for (int round = 0; round < 400; ++round) {
    const Drawn drawn = draw(random);
    const auto world = static_cast<std::uint32_t>(1 + random() % 6);
    const auto order = random() % 2 == 0 ? GradientOrder::parameter_order : GradientOrder::round_robin;
    const std::int64_t limit = random() % 2 == 0 ? 0 : world + static_cast<std::int64_t>(random() % 900);
    const FlatLayout whole = layout_of(drawn, world, order, limit);
    std::int64_t flat = 0, owned = 0, elems = 0;
    std::vector<std::int64_t> padding(world, 0);
    std::size_t interval = 0, place = 0;
    for (std::uint32_t group = 0; group < drawn.count; ++group) {
      Drawn alone;
      std::vector<std::uint32_t> ids;
      for (std::uint32_t i = 0; i < drawn.sizes.size(); ++i) {
        if (drawn.groups[i] != group) continue;
        alone.sizes.push_back(drawn.sizes[i]);
        ids.push_back(i);
      }
      const FlatLayout part = layout_of(alone, world, order, limit);
      for (std::size_t i = 0; i < part.order.size(); ++i) {
        const std::uint32_t mine = ids[raw(part.order[i])];
        EXPECT_EQ(raw(whole.order[place++]), mine);
        EXPECT_EQ(whole.param_offset[mine], flat + part.param_offset[raw(part.order[i])]);
        const auto expected = part.slices_of(part.order[i]);
        const auto found = whole.slices_of(ParamId{mine});
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t s = 0; s < found.size(); ++s) {
          EXPECT_EQ(found[s].rank, expected[s].rank);
          EXPECT_EQ(found[s].param_offset, expected[s].param_offset);
          EXPECT_EQ(found[s].shard_offset, owned + expected[s].shard_offset);
          EXPECT_EQ(found[s].elems, expected[s].elems);
          const Range range{found[s].shard_offset, found[s].shard_offset + found[s].elems};
          EXPECT_EQ(whole.flat_begin(range, found[s].rank), whole.param_offset[mine] + found[s].param_offset);
        }
      }
      for (std::size_t i = 0; i < part.intervals.size(); ++i, ++interval) {
        EXPECT_EQ(whole.intervals[interval].group, group);
        EXPECT_EQ(whole.intervals[interval].owned.begin, owned + part.intervals[i].owned.begin);
        EXPECT_EQ(whole.intervals[interval].owned.end, owned + part.intervals[i].owned.end);
        for (std::uint32_t rank = 0; rank < world; ++rank)
          EXPECT_EQ(whole.sub_partition_begin(interval, rank), flat + part.sub_partition_begin(i, rank));
      }
      for (std::uint32_t rank = 0; rank < world; ++rank) padding[rank] += part.padding_of(rank);
      flat += part.flat_elems;
      owned += part.shard_elems;
      elems += part.elems;
    }
    EXPECT_EQ(whole.flat_elems, flat);
    EXPECT_EQ(whole.shard_elems, owned);
    EXPECT_EQ(whole.elems, elems);
    EXPECT_EQ(whole.intervals.size(), interval);
    for (std::uint32_t rank = 0; rank < world; ++rank) EXPECT_EQ(whole.padding_of(rank), padding[rank]);
  }
}

TEST(ParamGroups, NoSubGroupSpansTwo) {
  const ModelPlan model = grouped({{"biases", {"*.bias"}, {}, {}}, {"rest", {}, {}, {}}});
  for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{3000}, std::int64_t{1'000'000'000}}) {
      ZeroConfig zero;
      zero.stage = stage;
      zero.sub_group_size = size;
      const Ownership ownership(model, zero, 3, 4);
      ASSERT_EQ(ownership.sub_groups().size(), ownership.param_group_of().size());
      std::int64_t next = 0;
      for (const Range& range : ownership.sub_groups()) {
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      EXPECT_EQ(next, ownership.owned_elems());
      for (const ParamPlan& param : model.params) {
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
          for (const OwnedSlice& slice : ownership.slices(param.id, rank)) {
            std::size_t i = 0;
            while (slice.owned_offset >= ownership.sub_groups()[i].end) ++i;
            EXPECT_EQ(ownership.param_group_of()[i], param.group) << param.name << " stage " << stage;
            EXPECT_LE(slice.owned_offset + slice.elems, ownership.sub_groups()[i].end);
          }
        }
      }
      if (stage < 3 || size == 1'000'000'000) {
        EXPECT_EQ(ownership.sub_groups().size(), 2U);
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::plan
