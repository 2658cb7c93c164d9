// The finding of a slow link: which group it blames, at what cost, and what it is not taken in by.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/group_transfers.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kStepNs = 10 * kMs;

/// What is different with one pair.
struct Pair {
  std::int64_t slow_ns = 0;    ///< longer in each step
  std::int64_t late_ns = 0;    ///< its second rank comes later
  std::int64_t jump_ns = 0;    ///< longer in one step of ten
  std::int64_t hidden_ns = 0;  ///< of its transfer: computation goes on
};
struct PairsRun {
  std::array<Pair, 4> pairs{};
  std::array<std::string, 8> hosts{};
  bool all_exposed = false;    ///< 1.5 ms of a reduction among all, before which nothing else runs
  bool fours = false;          ///< 0.1 ms of a reduction among four, in both halves
  std::int64_t move_ns = kMs;  ///< of each pair
  /// 0.1 ms of a reduction among every second rank, and so much longer among the odd ones; nullopt: none
  std::optional<std::int64_t> odd_slow_ns{};
  std::uint32_t steps = 10;
};

constexpr std::uint32_t kPairRanks = 8;

/// In steps of 10 ms four pairs each move a megabyte in a millisecond, after they computed for 5 ms.
store::Store& build(const PairsRun& run, RunBuilder& builder) {
  const auto reduces = [&](std::uint32_t rank, std::uint32_t step, std::uint32_t group, std::int64_t begin,
                           std::int64_t come, std::int64_t end) {
    const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::group, group),
                        sequence = ev::group_sequence(group, step);
    const auto op = static_cast<std::uint8_t>(CollectiveOp::all_reduce);
    builder.instant(rank, begin, EventKind::collective_begin, StreamId::reduce, sequence, 0, code, op,
                    250'000, kMs);
    builder.instant(rank, come, EventKind::collective_entered, StreamId::reduce, sequence, 0, code, op);
    builder.instant(rank, end, EventKind::collective_end, StreamId::reduce, sequence, 0, code, op, 250'000,
                    kMs);
  };
  for (std::uint32_t step = 0; step < run.steps; ++step) {
    for (std::uint32_t rank = 0; rank < kPairRanks; ++rank) {
      const Pair& pair = run.pairs[rank / 2];
      const std::int64_t at = step * kStepNs, come = at + 5 * kMs + pair.late_ns,
                         begin = rank % 2 == 1 ? come : at + 5 * kMs,
                         end = come + run.move_ns + pair.slow_ns + (step == 5 ? pair.jump_ns : 0) +
                               (step + rank / 2) % 3 * 10'000;
      builder.span(rank, at, pair.hidden_ns > 0 ? come + pair.hidden_ns : begin, EventKind::module_begin,
                   StreamId::compute, 1, step);
      reduces(rank, step, 0, begin, come, end);
      // Of the others no group has one that is alike.
      if (run.all_exposed) reduces(rank, step, 1, at + 8'300'000, at + 8'300'000, at + 9'800'000);
      if (run.fours)
        reduces(rank, step, 2, at + 9'800'000, at + 9'800'000, at + 9'900'000 + (rank < 4 ? 0 : 1000));
      if (run.odd_slow_ns)
        reduces(rank, step, 3, at + 8'300'000, at + 8'300'000,
                at + 8'400'000 + (rank % 2 == 0 ? 0 : *run.odd_slow_ns));
      builder.span(rank, at, at + kStepNs, EventKind::step_begin, StreamId::host, step);
    }
  }
  store::Store& store = builder.build();
  for (std::uint32_t rank = 0; rank < kPairRanks; ++rank) {
    ev::RunTables tables = *store.rank_tables(rank);
    const std::uint32_t pair = rank / 2 * 2, four = rank / 4 * 4, odd = rank % 2;
    tables.groups = {{0, "pair", ev::GroupPurpose::data, {pair, pair + 1}},
                     {1, "all", ev::GroupPurpose::data, {0, 1, 2, 3, 4, 5, 6, 7}},
                     {2, "four", ev::GroupPurpose::data, {four, four + 1, four + 2, four + 3}},
                     {3, "second", ev::GroupPurpose::other, {odd, odd + 2, odd + 4, odd + 6}}};
    store.set_tables(rank, tables);
    store::RankRow row = store.ranks()[rank];
    row.host = run.hosts[rank];
    store.set_rank(row);
  }
  return store;
}

std::vector<Finding> findings_of(const PairsRun& run) {
  RunBuilder builder(kPairRanks, 2);
  const store::Store& store = build(run, builder);
  return find(store, summarize(store));
}

std::optional<Finding> slow_link(const PairsRun& run) {
  const auto findings = findings_of(run);
  const auto found = std::ranges::find(findings, "slow_link", &Finding::id);
  return found == findings.end() ? std::nullopt : std::optional(*found);
}

bool blames(const std::optional<Finding>& found, const std::string& ranks) {
  return found && found->title.find(ranks) != std::string::npos;
}

TEST(SlowLink, OneThatIsSlowAgainstTheOthers) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  const auto found = slow_link(run);
  ASSERT_TRUE(blames(found, "between rank 4 and rank 5")) << (found ? found->title : "");
  EXPECT_NEAR(*found->cost_ms, 2, 0.05);
  EXPECT_EQ(found->severity, ev::Severity::warning);
  EXPECT_EQ(found->rank / 2, 2U);
  // Four pairs share 5 %. Excesses of 8 steps: 2 ms give or take 10 us by step and pair.
  EXPECT_NE(found->evidence.find("takes 2.0 to 2.0 ms longer (95 % for all 4 groups together), 2.0 ms"),
            std::string::npos)
      << found->evidence;
  // busbw: a megabyte in 3 ms, and in 1 ms.
  EXPECT_NE(found->evidence.find("0.33"), std::string::npos) << found->evidence;
  const auto all = findings_of(run);
  EXPECT_EQ(std::ranges::find(all, "straggler", &Finding::id), all.end());
  EXPECT_FALSE(slow_link({}));
  PairsRun late;
  late.pairs[2].late_ns = 2 * kMs;
  EXPECT_FALSE(slow_link(late)) << "that is a straggler";
}

/// An offset of a clock shortens or lengthens all transfers alike, so that no interval over steps shows it.
TEST(SlowLink, NoMoreThanTheClocksMayBeWrongIsNone) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  RunBuilder builder(kPairRanks, 2);
  const store::Store& store = build(run, builder);
  Summary summary = summarize(store);
  for (const auto& [residual_ns, slow] :
       {std::pair(std::int64_t{900'000}, true), std::pair(std::int64_t{1'100'000}, false)}) {
    for (const std::uint32_t rank : {0U, 7U}) summary.ranks[rank].clock_residual_ns = residual_ns;
    const auto findings = find(store, summary);
    EXPECT_EQ(std::ranges::find(findings, "slow_link", &Finding::id) != findings.end(), slow) << residual_ns;
  }
}

TEST(SlowLink, OneStepThatTookLongIsChanceAndHidesNoOther) {
  // A mean of 1.375 times the others', in an interval that holds 0.
  PairsRun jump;
  jump.pairs[2].jump_ns = 3 * kMs;
  EXPECT_FALSE(slow_link(jump));
  jump.pairs[2].jump_ns = 4 * kMs;  // 0.5 ms as a mean
  jump.pairs[1].slow_ns = 400'000;
  const auto found = slow_link(jump);
  ASSERT_TRUE(blames(found, "between rank 2 and rank 3"));
  EXPECT_NEAR(*found->cost_ms, 0.4, 0.05);
}

TEST(SlowLink, WhatComputationHidesCostsNothing) {
  PairsRun hidden;
  hidden.all_exposed = true;  // of another group
  hidden.pairs[2] = {.slow_ns = 2 * kMs, .hidden_ns = 3'100'000};
  EXPECT_FALSE(slow_link(hidden));
  hidden.pairs[2].hidden_ns = 2'500'000;
  const auto half = slow_link(hidden);
  ASSERT_TRUE(half);
  EXPECT_NEAR(*half->cost_ms, 0.5, 0.05);
  EXPECT_NE(half->evidence.find("at most 0.5 of 10.0 ms"), std::string::npos) << half->evidence;
  hidden.pairs[2].hidden_ns = 3'100'000;
  hidden.pairs[1].slow_ns = kMs;
  const auto other = slow_link(hidden);
  ASSERT_TRUE(blames(other, "between rank 2 and rank 3")) << (other ? other->title : "");
  EXPECT_NEAR(*other->cost_ms, 1, 0.05);
}

TEST(SlowLink, APairOnTwoHostsIsNotComparedWithPairsOnOne) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  run.hosts = {"a", "a", "a", "a", "a", "b", "b", "b"};
  EXPECT_FALSE(slow_link(run));
  run.hosts = {"a", "b", "a", "b", "a", "b", "a", "b"};
  EXPECT_TRUE(blames(slow_link(run), "between rank 4 and rank 5"));
}

TEST(SlowLink, ItsGroupsAreThoseThatMoveTheSame) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  run.fours = true;
  const auto found = slow_link(run);
  ASSERT_TRUE(found);
  EXPECT_NE(found->evidence.find("median of 3 groups"), std::string::npos) << found->evidence;
}

std::optional<Finding> exposed_communication(const std::vector<Finding>& findings) {
  const auto found = std::ranges::find(findings, "exposed_communication", &Finding::id);
  return found == findings.end() ? std::nullopt : std::optional(*found);
}

TEST(SlowLink, ExplainsTheExposedTimeThatItCauses) {
  PairsRun run{.move_ns = 300'000};
  run.pairs[2].slow_ns = 2 * kMs;
  const auto found = slow_link(run);
  ASSERT_TRUE(found);
  // 0.3 ms of every rank, 2 ms of two of eight; 0.3 of 10 ms would be below the limit of a finding.
  EXPECT_EQ(found->explains, (std::vector<std::string>{"8 % of a step is exposed communication"}));
  EXPECT_FALSE(exposed_communication(findings_of(run)));
}

TEST(SlowLink, WhatItDoesNotCauseIsAFindingOfItsOwn) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  const auto rest = exposed_communication(findings_of(run));
  ASSERT_TRUE(rest);
  EXPECT_NEAR(*rest->cost_ms, 1, 0.05) << "a millisecond of every rank would remain";
  EXPECT_NE(rest->title.find("besides the slow link"), std::string::npos) << rest->title;
  EXPECT_NE(rest->evidence.find("0.5 ms of it are of the slow link"), std::string::npos) << rest->evidence;
  EXPECT_TRUE(slow_link(run)->explains.empty());
  const auto alone = exposed_communication(findings_of(PairsRun{}));
  ASSERT_TRUE(alone);
  EXPECT_NEAR(*alone->cost_ms, 1, 0.05);
  EXPECT_EQ(alone->title.find("slow link"), std::string::npos) << alone->title;
}

TEST(SlowLink, IsThatOfTheRankThatAllSlowGroupsHave) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  run.odd_slow_ns = kMs;
  const auto found = slow_link(run);
  ASSERT_TRUE(blames(found, "of rank 5 is slow")) << (found ? found->title : "");
  EXPECT_EQ(found->rank, 5U);
  EXPECT_NEAR(*found->cost_ms, 3, 0.05) << "both groups delay rank 5";
  EXPECT_NE(found->evidence.find("of ranks 4, 5"), std::string::npos) << found->evidence;
  EXPECT_NE(found->evidence.find("of ranks 1, 3, 5, 7"), std::string::npos) << found->evidence;
  // The four that rank 5 is part of are as fast as the other four.
  run.fours = true;
  EXPECT_TRUE(blames(slow_link(run), "between rank 4 and rank 5 is slow"));
}

TEST(SlowLink, TheLinksByGroup) {
  PairsRun run;
  run.pairs[2].slow_ns = 2 * kMs;
  run.steps = 17;
  RunBuilder builder(kPairRanks, 2);
  const store::Store& store = build(run, builder);
  const std::vector<GroupLink> links = group_links(store, digest_of(store));
  ASSERT_EQ(links.size(), 4U);
  const auto at = [&](std::uint32_t first) {
    return *std::ranges::find_if(links, [&](const GroupLink& one) { return one.ranks.front() == first; });
  };
  const GroupLink slow = at(4), usual = at(0);
  EXPECT_EQ(slow.ranks, (GroupRanks{4, 5}));
  EXPECT_EQ(slow.op, CollectiveOp::all_reduce);
  EXPECT_EQ(slow.count, 16U);
  EXPECT_EQ(slow.bytes, 16 * kMs);
  // An all-reduce of a megabyte between two: as many bus bytes, in 3.01 and in 1.01 ms.
  EXPECT_NEAR(*slow.busbw_gbs, 1 / 3.01, 0.001);
  EXPECT_NEAR(*usual.busbw_gbs, 1 / 1.01, 0.01);
  ASSERT_TRUE(slow.interval && usual.interval);
  EXPECT_LE(slow.interval->low, *slow.busbw_gbs);
  EXPECT_LT(slow.interval->high, usual.interval->low);
  EXPECT_EQ(slow.no_interval, "");
  run.steps = 5;
  RunBuilder few_steps(kPairRanks, 2);
  const store::Store& few = build(run, few_steps);
  const GroupLink row = group_links(few, digest_of(few)).front();
  EXPECT_FALSE(row.interval);
  EXPECT_EQ(row.no_interval, "4 steps with a transfer, 8 are needed");
}

TEST(SlowLink, NoLinksByGroupWhereThereIsOneGroup) {
  RunBuilder builder(2, 2);
  EXPECT_TRUE(group_links(builder.build(), {}).empty());
  EXPECT_FALSE(has_groups(builder.build()));
}

}  // namespace
}  // namespace shardscope::analysis
