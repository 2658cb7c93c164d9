// Collectives: their bandwidth, and the elements that a stage is expected to move.
#include "app/analysis/communication.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "runtime/plan/zero_groups.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(Communication, BandwidthUsesTheShortestDurationAndTheGroupSize) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, rank == 0 ? 100 : 300, 500, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp,
             1000, 4000);
    run.span(rank, 600, 700, EventKind::collective_begin, StreamId::reduce, 0, 0,
             static_cast<std::uint8_t>(CollectiveOp::all_reduce), 500, 2000);
  }
  const Summary s = summarize(run.build());
  ASSERT_EQ(s.ops.size(), 2U);
  EXPECT_EQ(s.ops[0].op, CollectiveOp::all_gather);
  EXPECT_DOUBLE_EQ(*s.ops[0].algbw_gbs, 4000.0 / 200.0);
  EXPECT_DOUBLE_EQ(*s.ops[0].busbw_gbs, 20.0 * 0.5);
  EXPECT_DOUBLE_EQ(*s.ops[1].busbw_gbs, 20.0 * 1.0);  // 2 (n-1)/n with n = 2
  EXPECT_DOUBLE_EQ(*s.elements_per_step, 1000 + 2 * 500);
}

TEST(Communication, ExpressionsOfTheStages) {
  struct Case {
    std::int32_t stage;
    const char* expression;
    double elements;
  };
  for (const Case& c : {Case{0, "2S", 2000}, Case{1, "2S", 2000}, Case{2, "2S", 2000}, Case{3, "3S", 3000}}) {
    RunBuilder run(2, c.stage);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    const Summary s = summarize(run.build());
    EXPECT_EQ(s.comm_expression, c.expression);
    EXPECT_DOUBLE_EQ(s.expected_elements_per_step, c.elements);
  }
}

// Two ranks of four: busbw is algbw times 1/2, not 3/4.
TEST(Communication, BusBandwidthIsOfTheGroup) {
  RunBuilder run(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::secondary, 2);
    for (const auto& [at, kind] :
         {std::pair{100, EventKind::collective_begin}, std::pair{300, EventKind::collective_end}}) {
      run.instant(rank, at, kind, StreamId::gather, 0, 0, code, kGatherOp, 1000, 4000);
    }
  }
  const Summary s = summarize(run.build());
  ASSERT_EQ(s.ops.size(), 1U);
  EXPECT_DOUBLE_EQ(*s.ops[0].algbw_gbs, 20.0);
  EXPECT_DOUBLE_EQ(*s.ops[0].busbw_gbs, 10.0);
}

/// A collective of this scope among so many ranks, on `rank`.
store::Span collective_of(ev::CollectiveScope scope, std::size_t ranks) {
  store::Span span{};
  span.kind = EventKind::collective_begin;
  span.c = ev::collective_code(0, scope, static_cast<std::uint32_t>(ranks));
  return span;
}

// What a recording does not hold is derived: the runtime's own plan says the same.
TEST(Communication, TheRanksOfACollectiveAreThoseOfTheRuntimesGroups) {
  using Scope = ev::CollectiveScope;
  struct Case {
    std::uint32_t world, node;
    std::int64_t mics, hpz;
    bool qgz, hierarchical;
  };
  for (const Case& c :
       {Case{8, 8, 2, 0, false, false}, Case{12, 4, 3, 0, false, false}, Case{16, 4, 0, 8, false, false},
        Case{16, 4, 0, 4, true, false}, Case{16, 2, 8, 0, false, true}, Case{16, 4, 8, 0, false, true}}) {
    plan::ZeroConfig zero;
    zero.stage = 3;
    zero.mics_shard_size = c.mics;
    zero.hpz_partition_size = c.hpz;
    zero.quantized_gradients = c.qgz;
    zero.mics_hierarchical_params_gather = c.hierarchical;
    RunBuilder run(c.world);
    run.change_tables([&](ev::RunTables& tables) { tables.local_world = c.node; });
    const store::Store& store = run.build();
    std::size_t seen = 0;
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
      const plan::ZeroGroups groups = plan::make_zero_groups(zero, {c.world, c.node}, rank);
      for (const auto& [members, scope] :
           {std::pair{groups.secondary, Scope::secondary}, std::pair{groups.shard, Scope::shard},
            std::pair{groups.replica, Scope::replica}, std::pair{groups.shard_intra, Scope::intra_node},
            std::pair{groups.shard_inter, Scope::inter_node}, std::pair{groups.intra_node, Scope::intra_node},
            std::pair{groups.inter_node, Scope::inter_node}}) {
        if (members.empty()) continue;
        const auto ranks = collective_ranks(store, rank, collective_of(scope, members.size()));
        ASSERT_TRUE(ranks.has_value());
        EXPECT_EQ(ranks->list(), members) << "rank " << rank << ", scope " << static_cast<int>(scope);
        ++seen;
      }
    }
    EXPECT_GE(seen, c.world);
  }
}

// Two pairs reduce at the same time, with the same numbers: rank 3 keeps only rank 2 waiting.
TEST(Communication, GroupsBesideEachOtherDoNotWaitForOneAnother) {
  RunBuilder run(4);
  const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::shard, 2);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::int64_t begin = rank == 3 ? 700'000 : 200'000, end = rank < 2 ? 300'000 : 800'000;
    run.span(rank, 0, 1'000'000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, 0, begin, EventKind::module_begin, StreamId::compute, 1, 0);
    for (const auto& [at, kind] :
         {std::pair{begin, EventKind::collective_begin}, std::pair{end, EventKind::collective_end}})
      run.instant(rank, at, kind, StreamId::reduce, 0, 0, code,
                  static_cast<std::uint8_t>(CollectiveOp::all_reduce), 1000, 4000);
  }
  const Summary s = summarize(run.build());
  ASSERT_EQ(s.ranks.size(), 4U);
  EXPECT_EQ(s.ranks[0].waiting_ns, 0);
  EXPECT_EQ(s.ranks[2].waiting_ns, 500'000);
  EXPECT_EQ(s.ranks[3].others_waited_ns, 500'000);
  ASSERT_EQ(s.waited_pairs.size(), 1U);
  EXPECT_EQ(s.waited_pairs[0].waiter, 2U);
  EXPECT_EQ(s.waited_pairs[0].late, 3U);
  EXPECT_EQ(s.waited_pairs[0].ns, 500'000);
}

// The end of a collective is emitted by a thread of its library, which may run only when the next step has
// begun: the collective is of the step in which it began, and of no other.
TEST(Communication, ACollectiveThatEndsInTheNextStepIsCountedOnce) {
  RunBuilder run(1, 0);
  const auto all_reduce = static_cast<std::uint8_t>(CollectiveOp::all_reduce);
  for (const std::uint32_t step : {0U, 1U, 2U}) {
    const std::int64_t at = 1000 * (step + 1);
    run.span(0, at, at + 1000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at + 800, step == 2 ? at + 900 : at + 1100, EventKind::collective_begin, StreamId::reduce,
             step, 0, all_reduce, 1000, 4000);
  }
  const Summary summary = summarize(run.build());
  ASSERT_TRUE(summary.elements_per_step);
  EXPECT_EQ(*summary.elements_per_step, 2000);
  ASSERT_EQ(summary.ops.size(), 1U);
  EXPECT_EQ(summary.ops[0].count, summary.ops_steps);
}

}  // namespace
}  // namespace shardscope::analysis
