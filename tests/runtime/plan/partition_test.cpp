// Partitions, buckets, reductions and gathers cover every element exactly once.
#include "runtime/plan/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/plan/bucket.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/stage12.h"
#include "tests/runtime/plan/gradient_reducer.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing_support::GradientReducer;

std::uint32_t draw(std::mt19937& random, std::uint32_t below) {
  return static_cast<std::uint32_t>(random() % below);
}

std::vector<std::int64_t> random_sizes(std::mt19937& random) {
  std::vector<std::int64_t> sizes(1 + draw(random, 12));
  for (std::int64_t& size : sizes) size = 1 + draw(random, draw(random, 4) == 0 ? 5000 : 40);
  return sizes;
}

TEST(ParamPartition, CoversTheParameterOnce) {
  for (const std::int64_t elems : {1, 2, 3, 7, 8, 100, 1001}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U, 64U}) {
      const ParamPartition part = partition_param(elems, world);
      std::int64_t next = 0;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const Range range = part.real_range(rank);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), part.shard_elems);
        next = range.end;
      }
      EXPECT_EQ(next, elems);
      EXPECT_EQ(part.padding_elems, part.shard_elems * world - elems);
      EXPECT_LT(part.padding_elems, static_cast<std::int64_t>(world));
    }
  }
  EXPECT_THROW((void)partition_param(4, 0), std::invalid_argument);
}

// S1, computed by hand from its rules.
TEST(LegacyLayout, FollowsTheRulesOfTheFirstStage1) {
  // 100 elements at 40: three communications of 40 pad 20, two need 100/(4*2) = 13 more each: 53.
  EXPECT_EQ(best_elems_per_comm(100, 40, 4), 53);
  EXPECT_EQ(best_elems_per_comm(100, 50, 4), 50);    // no padding at all
  EXPECT_EQ(best_elems_per_comm(100, 500, 4), 500);  // fits into one
  EXPECT_EQ(best_elems_per_comm(15, 10, 3), 10);     // as much padding either way: the limit stays
  // 53 / 4 = 13 a rank and communication, 25 a rank: two communications of 13 * 4.
  const FlatLayout layout = make_legacy_layout({60, 40}, 4, 40);
  EXPECT_EQ(layout.intervals.size(), 2U);
  EXPECT_EQ(layout.intervals[1].owned.begin, 13);
  EXPECT_EQ(layout.intervals[1].owned.end, 26);
  EXPECT_EQ(layout.flat_elems, 104);
  EXPECT_EQ(layout.shard_elems, 26);
  EXPECT_EQ(layout.padding_of(2), 0);
  EXPECT_EQ(layout.padding_of(3), 4);
  // The first parameter ends in the second communication, in rank 0's piece.
  const auto slices = layout.slices_of(ParamId{0});
  ASSERT_EQ(slices.size(), 5U);
  EXPECT_EQ(slices[4].rank, 0U);
  EXPECT_EQ(slices[4].param_offset, 52);
  EXPECT_EQ(slices[4].shard_offset, 13);
  EXPECT_EQ(slices[4].elems, 8);
  EXPECT_EQ(make_legacy_layout({60, 40}, 4, 500).flat_elems, 100);  // one communication, no alignment
  EXPECT_THROW((void)make_legacy_layout({60, 40}, 4, 3), std::invalid_argument);
}

TEST(LegacyLayout, SubPartitionsTakeTurns) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    const auto sizes = random_sizes(random);
    const std::uint32_t world = 1 + draw(random, 6);
    const FlatLayout layout = make_legacy_layout(sizes, world, world + draw(random, 3000));
    const std::int64_t each = layout.intervals.front().owned.size();
    EXPECT_EQ(layout.flat_elems, static_cast<std::int64_t>(layout.intervals.size()) * each * world);
    EXPECT_GE(layout.flat_elems, layout.elems);
    std::int64_t next = 0;
    std::int64_t padding = 0;
    for (const FlatSlice& slice : layout.slices) {
      const auto interval = static_cast<std::size_t>(slice.shard_offset / each);
      EXPECT_EQ(layout.sub_partition_begin(interval, slice.rank) + slice.shard_offset % each, next);
      EXPECT_EQ(layout.param_offset[raw(slice.param)] + slice.param_offset, next);
      next += slice.elems;
    }
    EXPECT_EQ(next, layout.elems);
    for (std::uint32_t rank = 0; rank < world; ++rank) padding += layout.padding_of(rank);
    EXPECT_EQ(padding, layout.flat_elems - layout.elems);
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      std::int64_t elems = 0;
      for (const FlatSlice& slice : layout.slices_of(ParamId{i})) elems += slice.elems;
      EXPECT_EQ(elems, sizes[i]);
    }
  }
}

TEST(FlatLayout, SlicesTileTheFlatBuffer) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto sizes = random_sizes(random);
    const std::uint32_t world = 1 + draw(random, 9);
    const auto order = draw(random, 2) == 0 ? GradientOrder::parameter_order : GradientOrder::round_robin;
    const FlatLayout layout = make_flat_layout(sizes, world, order);
    EXPECT_EQ(layout.flat_elems % (2 * world), 0);
    EXPECT_LT(layout.flat_elems - layout.elems, 2 * world);
    std::int64_t next = 0;
    std::vector<std::int64_t> covered(sizes.size(), 0);
    for (const FlatSlice& slice : layout.slices) {
      EXPECT_EQ(slice.rank * layout.shard_elems + slice.shard_offset, next);
      EXPECT_LE(slice.shard_offset + slice.elems, layout.shard_elems);
      EXPECT_EQ(slice.param_offset, covered[raw(slice.param)]);
      covered[raw(slice.param)] += slice.elems;
      next += slice.elems;
    }
    EXPECT_EQ(next, layout.elems);
    EXPECT_EQ(covered, sizes);
    std::int64_t padding = 0;
    for (std::uint32_t rank = 0; rank < world; ++rank) padding += layout.padding_of(rank);
    EXPECT_EQ(padding, layout.flat_elems - layout.elems);
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      std::int64_t found = 0;
      for (const FlatSlice& slice : layout.slices_of(ParamId{i})) found += slice.elems;
      EXPECT_EQ(found, sizes[i]);
    }
  }
}

TEST(FlatLayout, RoundRobinDealsParametersOut) {
  const FlatLayout layout = make_flat_layout({1, 2, 3, 4, 5}, 2, GradientOrder::round_robin);
  EXPECT_THAT(layout.order, ElementsAre(ParamId{0}, ParamId{2}, ParamId{4}, ParamId{1}, ParamId{3}));
}

TEST(BucketPlanner, FlushesBeforeTheGradientThatDoesNotFit) {
  BucketPlanner planner({.bucket_elems = 10, .buffers = 2});
  EXPECT_TRUE(planner.add(ParamId{0}, 6).empty());
  EXPECT_TRUE(planner.add(ParamId{1}, 4).empty());  // exactly full is not too full
  EXPECT_EQ(planner.open_buffer(), 0U);
  const auto flushes = planner.add(ParamId{2}, 1);
  ASSERT_EQ(flushes.size(), 1U);
  EXPECT_EQ(flushes[0].reason, FlushReason::full);
  EXPECT_EQ(flushes[0].trigger, ParamId{2});
  EXPECT_THAT(flushes[0].params, ElementsAre(ParamId{0}, ParamId{1}));
  EXPECT_EQ(flushes[0].elems, 10);
  EXPECT_EQ(flushes[0].buffer_index, 0U);
  EXPECT_EQ(planner.open_buffer(), 1U) << "of the gradient that did not fit";
  const auto last = planner.finish();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->buffer_index, 1U);
  EXPECT_EQ(last->reason, FlushReason::epilogue);
  EXPECT_FALSE(planner.finish());
  (void)planner.add(ParamId{0}, 6);
  EXPECT_EQ(planner.finish()->buffer_index, 0U) << "each backward starts with the first buffer";
}

// DeepSpeed flushes the empty bucket before a first gradient that does not fit: nothing travels, but the
// buffers change places.
TEST(BucketPlanner, AnEmptyFlushChangesBuffersToo) {
  for (const bool report_empty : {false, true}) {
    BucketPlanner planner({.bucket_elems = 10, .buffers = 2, .report_empty = report_empty});
    const auto flushes = planner.add(ParamId{0}, 11);
    ASSERT_EQ(flushes.size(), report_empty ? 2U : 1U);
    if (report_empty) {
      EXPECT_THAT(flushes[0].params, testing::IsEmpty());
      EXPECT_EQ(flushes[0].buffer_index, 0U);
    }
    EXPECT_EQ(flushes.back().reason, FlushReason::extra_large);
    EXPECT_EQ(flushes.back().buffer_index, 1U);
  }
}

TEST(BucketPlanner, ReducesAnExtraLargeGradientAtOnceButChangesBuffersAsDeepSpeedDoes) {
  BucketPlanner planner({.bucket_elems = 10, .buffers = 2});
  (void)planner.add(ParamId{0}, 3);
  const auto flushes = planner.add(ParamId{1}, 11);
  ASSERT_EQ(flushes.size(), 2U);
  EXPECT_EQ(flushes[0].reason, FlushReason::full);
  EXPECT_EQ(flushes[1].reason, FlushReason::extra_large);
  EXPECT_EQ(flushes[1].buffer_index, 1U);
  EXPECT_TRUE(planner.add(ParamId{2}, 1).empty());
  EXPECT_EQ(planner.finish()->buffer_index, 0U);
  (void)planner.add(ParamId{3}, 1);
  EXPECT_EQ(planner.finish()->buffer_index, 0U) << "each backward starts with the first buffer";
}

TEST(BucketPlanner, NumbersGoOnOverTheRun) {
  BucketPlanner planner({.bucket_elems = 10});
  (void)planner.add(ParamId{0}, 1);
  EXPECT_EQ(planner.open_bucket(), BucketId{0});
  EXPECT_EQ(planner.finish()->bucket, BucketId{0});
  (void)planner.add(ParamId{0}, 1);
  EXPECT_EQ(planner.finish()->bucket, BucketId{1});
  EXPECT_THROW(BucketPlanner({.bucket_elems = 0}), std::invalid_argument);
}

/// Every element of every gradient reaches its owner exactly once per reduction.
TEST(GradientReducer, EveryElementReachesItsOwnerOnce) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const auto sizes = random_sizes(random);
    const std::uint32_t world = 1 + draw(random, 6);
    const FlatLayout layout = make_flat_layout(
        sizes, world, draw(random, 2) == 0 ? GradientOrder::parameter_order : GradientOrder::round_robin);
    GradientReducer::Config config;
    config.stage = 1 + draw(random, 2);
    config.bucket_elems = 1 + draw(random, 3000);
    config.overlap_comm = draw(random, 2) == 0;
    config.mode = draw(random, 2) == 0 ? ReduceMode::to_owners : ReduceMode::multi_rank;
    config.accumulation_steps = 1 + draw(random, 3);
    GradientReducer reducer(layout, config);
    std::vector<std::uint32_t> arrival(sizes.size());
    for (std::uint32_t i = 0; i < arrival.size(); ++i) arrival[i] = i;
    std::shuffle(arrival.begin(), arrival.end(), random);

    std::vector<std::int64_t> per_rank(world, 0);
    std::int64_t flushed = 0;
    const auto take = [&](const std::vector<DueFlush>& due) {
      for (const DueFlush& flush : due) {
        flushed += flush.flush.elems;
        std::int64_t carried = 0;
        for (const ReduceCollective& collective : flush.collectives) {
          for (const ReduceSlice& slice : collective.slices) {
            const bool to_one = collective.op == ReduceCollective::Op::reduce;
            EXPECT_TRUE(!to_one || slice.rank == collective.rank);
            per_rank[slice.rank] += slice.elems;
            carried += slice.elems;
          }
          std::int64_t in_slices = 0;
          for (const FlatSlice& slice : slices_of(layout, flush.flush, collective)) {
            in_slices += slice.elems;
            EXPECT_TRUE(collective.op != ReduceCollective::Op::reduce || slice.rank == collective.rank);
          }
          EXPECT_EQ(in_slices, collective.elems);
        }
        EXPECT_EQ(carried, flush.flush.elems);
      }
    };
    constexpr std::int64_t kWindows = 2;  // the second starts as the first did
    for (std::int64_t micro = 0; micro < kWindows * config.accumulation_steps; ++micro) {
      EXPECT_EQ(reducer.micro_step(), micro % config.accumulation_steps);
      const bool boundary = reducer.boundary();
      const std::int64_t before = flushed;
      for (const std::uint32_t param : arrival) take(reducer.gradient_ready(ParamId{param}));
      take(reducer.end_backward());
      const bool reduces = config.stage == 2 || boundary;
      EXPECT_EQ(flushed - before, reduces ? layout.elems : 0);
    }
    const std::int64_t times = kWindows * (config.stage == 2 ? config.accumulation_steps : 1);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      EXPECT_EQ(per_rank[rank], times * (layout.shard_elems - layout.padding_of(rank)));
    }
  }
}

TEST(GradientReducer, ModeFollowsConfigurationAndCompatibility) {
  ZeroConfig zero;
  zero.stage = 2;
  EXPECT_EQ(reduce_mode(zero), ReduceMode::to_owners);
  zero.compat = default_switches(Compat::deepspeed);
  EXPECT_EQ(reduce_mode(zero), ReduceMode::multi_rank);
  zero.use_multi_rank_bucket_allreduce = false;
  EXPECT_EQ(reduce_mode(zero), ReduceMode::to_owners);
  zero.reduce_scatter = false;
  EXPECT_EQ(reduce_mode(zero), ReduceMode::whole_bucket);
}

TEST(AllGatherShards, TileThePartitionAndKeepTheAlignment) {
  for (const std::int64_t shard : {2, 10, 50'210, 33'474}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 8U}) {
      for (const std::int64_t bucket : {1, 7, 1000, 40'000, 500'000'000}) {
        const auto shards = all_gather_shards(shard, world, bucket, false);
        std::int64_t next = 0;
        for (const Range& range : shards) {
          EXPECT_EQ(range.begin, next);
          EXPECT_EQ(range.begin % kFlatAlignment, 0);
          EXPECT_GT(range.size(), 0);
          next = range.end;
        }
        EXPECT_EQ(next, shard);
      }
    }
  }
  EXPECT_EQ(all_gather_shards(50'210, 2, 20'000, false).size(), 5U);
  EXPECT_EQ(all_gather_shards(50'210, 2, 20'000, true).size(), 1U);
}

// P9, groups_padding of stage 3: per sub-group a list of the padding of its parameters. DeepSpeed writes all
// of it down for the last rank, which it all lies on where a parameter has at least a shard for every rank;
// here each rank knows its own, and they add up to that list.
TEST(GroupsPadding, OfEverySubGroupAddsUpToDeepSpeedsList) {
  const ModelPlan model = build_model_plan(named_model("mlp"));  // its last parameter has one element
  ZeroConfig zero;
  zero.stage = 3;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U, 7U}) {
    for (const std::int64_t sub_group : {1LL, 3000LL, 1'000'000'000LL}) {
      zero.sub_group_size = sub_group;
      const Ownership ownership(model, zero, world);
      std::size_t seen = 0;
      for (const Range& group : ownership.sub_groups()) {
        std::vector<std::int64_t> deepspeed, ours;
        for (const ParamPlan& param : model.params) {
          const std::int64_t at = ownership.slices(param.id, 0).front().owned_offset;
          if (at < group.begin || at >= group.end) continue;
          ++seen;
          const std::int64_t n = world;
          deepspeed.push_back((n - param.elems % n) % n);
          std::int64_t sum = 0;
          for (std::uint32_t rank = 0; rank < world; ++rank) {
            const std::int64_t padding = ownership.slices(param.id, rank).front().padding_elems;
            sum += padding;
            EXPECT_TRUE(padding == 0 || rank + 1 == world || param.elems < n * n)
                << param.name << ' ' << rank;
          }
          ours.push_back(sum);
        }
        EXPECT_EQ(ours, deepspeed) << world << ' ' << sub_group;
      }
      EXPECT_EQ(seen, model.params.size());
      EXPECT_EQ(ownership.sub_groups().size() == model.params.size(), sub_group == 1);
    }
  }
  zero.sub_group_size = 1'000'000'000;
  const Ownership four(model, zero, 4);
  const ParamId last = model.params.back().id;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(four.slices(last, rank).front().padding_elems, rank == 0 ? 0 : 1)
        << "one element over four ranks";
  }
}

}  // namespace
}  // namespace shardscope::plan
