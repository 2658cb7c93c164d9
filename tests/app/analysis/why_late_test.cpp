// Why a rank came last: what it has more of than the others, by hand and of a store.
#include "app/analysis/why_late.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(WhyLate, IsWhatItHasMoreOfThanTheMedianOfTheOthers) {
  std::vector<OwnParts> ranks{{0, 10, 1, 2, 0}, {1, 14, 1, 2, 0}, {2, 10, 1, 2, 0}};
  const auto computed = why_late(ranks, 1);
  ASSERT_TRUE(computed);
  EXPECT_EQ(text_of(*computed), "it computed 14.0 ms of a step, the others 10.0 ms");
  EXPECT_FALSE(why_late(ranks, 0)) << "it has more of nothing";
  ranks[1] = {1, 10, 1, 9, 0};
  EXPECT_EQ(text_of(*why_late(ranks, 1)), "it did nothing 9.0 ms of a step, the others 2.0 ms");
  ranks[1].data = 6;  // of these 9
  EXPECT_EQ(text_of(*why_late(ranks, 1)), "it waited 6.0 ms of a step for its data");
  // What it waits as long as the others do is not why it is later.
  EXPECT_EQ(text_of(*why_late({{0, 10, 0, 3, 3}, {1, 14, 0, 3, 3}}, 1)),
            "it computed 14.0 ms of a step, the others 10.0 ms");
  ranks[1] = {1, 10, 8, 2, 0};
  EXPECT_STREQ(verb_of(*why_late(ranks, 1)), "copied");
  EXPECT_FALSE(why_late({{0, 10, 1, 2, 0}}, 0)) << "no others";
}

TEST(WhyLate, NamesItsProcessorWhereThatIsMostOfIt) {
  const std::string computed = "it computed 14.0 ms of a step, the others 10.0 ms";
  const auto of = [](double own, double others, std::uint64_t retries) {
    return text_of(*why_late({{0, 10, 0, 0, 0, others, 7}, {1, 14, 0, 0, 0, own, retries}}, 1));
  };
  EXPECT_EQ(of(1.3, 0, 0), computed) << "less than a third of 4 ms";
  EXPECT_EQ(of(6, 5, 0), computed) << "the others wait as well";
  EXPECT_EQ(of(3, 0.5, 0),
            computed + "; its threads waited for a processor for 3.0 ms, those of the others for 0.5 ms");
  EXPECT_EQ(of(0, 0, 1), computed + "; its memory allocator freed its cache 1 time");
}

OwnParts with_groups(std::uint32_t rank, double idle, std::vector<OwnGroup> groups) {
  return {.rank = rank, .compute = 10, .idle = idle, .groups = std::move(groups)};
}

TEST(WhyLate, IsAnotherGroupWhoseCollectivesTookLonger) {
  // Even ranks wait for rank 4 in their common group; odd ranks, which have no part in it, are idle for less.
  const OwnGroup even{9, {0, 2, 4, 6}, 0, 1.2};
  std::vector<OwnParts> ranks{
      with_groups(0, 4, {{1, {0, 1}, 0, 0.4}, {9, {0, 2, 4, 6}, 1.2, 1.2}}),
      with_groups(1, 0.3, {{1, {0, 1}, 0, 0.4}}), with_groups(2, 4, {{2, {2, 3}, 0, 0.4}, even}),
      with_groups(3, 0.3, {{2, {2, 3}, 0, 0.4}}), with_groups(4, 4, {{3, {4, 5}, 0.1, 1.6}, even})};
  EXPECT_EQ(text_of(*why_late(ranks, 4, {0, 2})),
            "it was in collectives of the group of ranks 4, 5 for 1.7 ms of a step, the others in theirs for "
            "0.4 ms; bytes moved for 1.6 ms of it");
  ranks[4].groups[0] = {3, {4, 5}, 1.6, 0.1, 5, 1.5};
  const auto waited = why_late(ranks, 4, {0, 2});
  EXPECT_NE(text_of(*waited).find("; it waited there for rank 5 for 1.5 ms"), std::string::npos)
      << text_of(*waited);
  EXPECT_EQ(waited->group.late, 5U);
  ranks[4].groups[0].late_ms = 0.5;  // of several
  EXPECT_NE(text_of(*why_late(ranks, 4, {0, 2})).find("it waited there for other ranks for 1.6 ms"),
            std::string::npos);
  // What it computes longer still is why it is late.
  ranks[4].compute = 12;
  EXPECT_STREQ(verb_of(*why_late(ranks, 4, {0, 2})), "computed");
  ranks[4].compute = 10;
  ranks[4].groups[0] = {3, {4, 5}, 0, 0.4};
  EXPECT_FALSE(why_late(ranks, 4, {0, 2})) << "it has more of nothing";
}

TEST(WhyLate, ComparesWithThoseThatWaitedForIt) {
  EXPECT_EQ(waiters_of({{0, 5.0}, {1, 0.4}, {2, 0.6}, {3, 0.0}}), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(waiters_of({}).empty());
}

/// Ten steps of 10 ms of four ranks: 4 ms of computation, then a reduction of each pair, then one of all.
std::string why_of_pairs(std::uint32_t rank, std::int64_t slow_ns, std::int64_t late_ns) {
  RunBuilder builder(4, 2);
  const auto op = static_cast<std::uint8_t>(CollectiveOp::all_reduce);
  for (std::uint32_t step = 0; step < 10; ++step) {
    for (std::uint32_t of = 0; of < 4; ++of) {
      const std::int64_t at = step * 10 * kMs, computed = at + 4 * kMs + (of == 3 ? late_ns : 0),
                         entered = at + 4 * kMs + (of > 1 ? late_ns : 0),
                         reduced = entered + kMs + (of > 1 ? slow_ns : 0) + (of == 2 ? 20'000 : 0),
                         last = at + 5 * kMs + late_ns + slow_ns + 20'000, end = last + kMs / 2;
      const auto reduces = [&](std::uint32_t group, std::int64_t begin, std::int64_t come,
                               std::int64_t done) {
        const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::group, group),
                            sequence = ev::group_sequence(group, step);
        builder.instant(of, begin, EventKind::collective_begin, StreamId::reduce, sequence, 0, code, op, 1000,
                        4000);
        builder.instant(of, come, EventKind::collective_entered, StreamId::reduce, sequence, 0, code, op);
        builder.instant(of, done, EventKind::collective_end, StreamId::reduce, sequence, 0, code, op, 1000,
                        4000);
      };
      builder.span(of, at, computed, EventKind::module_begin, StreamId::compute, 1, step);
      reduces(0, computed, std::max(entered, computed + 1), reduced);
      reduces(1, reduced, std::max(last, reduced + 1), end);
      builder.span(of, at, at + 10 * kMs, EventKind::step_begin, StreamId::host, step);
    }
  }
  store::Store& store = builder.build();
  for (std::uint32_t of = 0; of < 4; ++of) {
    ev::RunTables tables = *store.rank_tables(of);
    const std::uint32_t pair = of / 2 * 2;
    tables.groups = {{0, "pair", ev::GroupPurpose::data, {pair, pair + 1}},
                     {1, "all", ev::GroupPurpose::other, {0, 1, 2, 3}}};
    store.set_tables(of, tables);
  }
  const auto why = why_late(summarize(store), rank);
  return why ? text_of(*why) : "";
}

TEST(WhyLate, OfARunIsTheLinkOfItsOtherGroup) {
  EXPECT_EQ(why_of_pairs(2, 2 * kMs, 0),
            "it was in collectives of the group of ranks 2, 3 for 3.0 ms of a step, the others in theirs for "
            "1.0 ms; bytes moved for 3.0 ms of it");
}

TEST(WhyLate, OfARunIsTheNeighbourThatItWaitedFor) {
  EXPECT_EQ(why_of_pairs(2, 0, 2 * kMs),
            "it was in collectives of the group of ranks 2, 3 for 3.0 ms of a step, the others in theirs for "
            "1.0 ms; it waited there for rank 3 for 2.0 ms");
  EXPECT_EQ(why_of_pairs(3, 0, 2 * kMs), "it computed 6.0 ms of a step, the others 4.0 ms");
}

constexpr std::uint32_t kLateLongStep = 5;  // of LateRun, half a second longer where it has one

/// Ten steps of 16 ms; rank 1 computes for 14 ms, rank 0 for 10 and then waits for it. In turns: the ranks
/// change places with each step.
struct LateRun {
  RunBuilder builder{2, 2};
  std::int64_t longer_ns;
  explicit LateRun(bool with_long = false, bool in_turns = false) : longer_ns(with_long ? 500'000'000 : 0) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      const std::int64_t at = begin(step), extra = step == kLateLongStep ? longer_ns : 0;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const bool late = rank == (in_turns ? step % 2 : 1);
        const std::int64_t computed = at + (late ? 14'000'000 : in_turns ? 6'000'000 : 10'000'000);
        builder.span(rank, at, computed, EventKind::module_begin, StreamId::compute, 1, step);
        builder.span(rank, computed, at + 15'500'000, EventKind::collective_begin, StreamId::reduce, step, 0,
                     kGatherOp, 1000, 4000);
        builder.span(rank, at, at + 16'000'000 + extra, EventKind::step_begin, StreamId::host, step);
      }
    }
  }
  [[nodiscard]] std::int64_t begin(std::uint32_t step) const {
    return step * std::int64_t{17'000'000} + (step > kLateLongStep ? longer_ns : 0);
  }
  /// What rank 1's threads waited for a processor, in each step, and rank 0's.
  void waits_for_processor(std::int64_t ns, std::int64_t others_ns = 0) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        builder.instant(rank, begin(step) + 15'000'000, EventKind::processor_wait, StreamId::host, 3, 0,
                        ev::kNoId, 0, rank == 1 ? ns : others_ns, 16'000'000);
    }
  }
  /// Clocks of the ranks' GPUs, of rank 1 at its power limit.
  void clocks(std::uint32_t mhz, std::uint32_t others_mhz) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        builder.instant(rank, begin(step) + 15'000'000, EventKind::gpu_sample, StreamId::host,
                        rank == 1 ? mhz : others_mhz, 2619, 71, rank == 1 ? 1 : 0, 1'000'000 + step * 1000,
                        0);
    }
  }
  /// The allocator's own count, at the end of each step: 50 more in the long one.
  void allocator(std::uint32_t retries_a_step) {
    for (std::uint32_t step = 0; step < 10; ++step)
      builder.instant(1, begin(step) + 15'000'000, EventKind::allocator_state, StreamId::host,
                      step * retries_a_step + (longer_ns > 0 && step >= kLateLongStep ? 50 : 0), 0, ev::kNoId,
                      static_cast<std::uint8_t>(ev::MemoryPool::device), 1000, 10);
  }
};

TEST(WhyLate, OfARunIsThatOfTheRankForWhichOthersWait) {
  LateRun run;
  const Summary summary = summarize(run.builder.build());
  ASSERT_TRUE(why_late(summary, 1));
  EXPECT_EQ(text_of(*why_late(summary, 1)), "it computed 14.0 ms of a step, the others 10.0 ms");
  Summary in_turns = summary;
  in_turns.ranks[1].others_waited_ns *= 4;  // most of it is of something else
  EXPECT_FALSE(why_late(in_turns, 1));
}

TEST(WhyLate, OfARunWhoseCoresAreTakenIsThat) {
  for (const std::int64_t waited_ns : {1'000'000, 4'000'000}) {
    LateRun run;
    run.waits_for_processor(waited_ns);
    const store::Store& store = run.builder.build();
    const Summary summary = summarize(store);
    const bool said = waited_ns > 2'000'000;  // of 4 ms that it computes longer
    EXPECT_EQ(text_of(*why_late(summary, 1)).find("waited for a processor for 4.0 ms") != std::string::npos,
              said);
    const auto findings = find(store, summary);
    const auto straggler = std::ranges::find(findings, "straggler", &Finding::id);
    ASSERT_NE(straggler, findings.end());
    EXPECT_EQ(straggler->evidence.find("waited for a processor for 4.0 ms of a step") != std::string::npos,
              said)
        << straggler->evidence;
    EXPECT_EQ(straggler->next_step.find("taskset") != std::string::npos, said);
    EXPECT_EQ(summary.ranks[1].processor_waits->switches, 27U) << "of nine steps";
  }
}

/// All ranks lose their processors: that one is later may be chance, and is no warning.
TEST(WhyLate, OfARunWhoseHostIsOverloadedItMayBeThat) {
  for (const std::int64_t waited_ns : {3'000'000, 6'000'000}) {
    LateRun run;
    run.waits_for_processor(waited_ns, waited_ns - 500'000);
    const store::Store& store = run.builder.build();
    const auto findings = find(store, summarize(store));
    const auto straggler = std::ranges::find(findings, "straggler", &Finding::id);
    ASSERT_NE(straggler, findings.end());
    const bool contended = waited_ns > 4'000'000;  // than it computes longer
    EXPECT_EQ(straggler->severity, contended ? ev::Severity::info : ev::Severity::warning);
    EXPECT_EQ(straggler->evidence.find("Threads of all ranks waited for a processor, its own for 6.0 ms") !=
                  std::string::npos,
              contended)
        << straggler->evidence;
  }
}

TEST(WhyLate, RanksThatWaitInTurnsOnAnOverloadedHostDoNotWarnOfCommunication) {
  for (const std::int64_t waited_ns : {1'000'000, 6'000'000}) {
    LateRun run(false, true);
    run.waits_for_processor(waited_ns, waited_ns);
    const store::Store& store = run.builder.build();
    const auto findings = find(store, summarize(store));
    EXPECT_EQ(std::ranges::find(findings, "straggler", &Finding::id), findings.end());
    const auto exposed = std::ranges::find(findings, "exposed_communication", &Finding::id);
    ASSERT_NE(exposed, findings.end());
    const bool contended = waited_ns > 4'000'000;  // than each waits for the other
    EXPECT_EQ(exposed->severity, contended ? ev::Severity::info : ev::Severity::warning);
    EXPECT_EQ(exposed->evidence.find("waited for a processor for 6.0 ms of a step") != std::string::npos,
              contended)
        << exposed->evidence;
  }
}

TEST(WhyLate, AStragglerWhoseAllocatorRetriesIsSaidToBe) {
  for (const std::uint32_t retries : {0U, 2U}) {
    LateRun run;
    run.allocator(retries);
    const store::Store& store = run.builder.build();
    const Summary summary = summarize(store);
    EXPECT_EQ(text_of(*why_late(summary, 1)).find("its memory allocator freed its cache 18 times") !=
                  std::string::npos,
              retries > 0);
    EXPECT_FALSE(summary.ranks[0].allocator_retries) << "it records none";
    EXPECT_EQ(summary.ranks[1].allocator_retries, 9 * retries);
    const auto findings = find(store, summary);
    const auto straggler = std::ranges::find(findings, "straggler", &Finding::id);
    ASSERT_NE(straggler, findings.end());
    // The first step is warm-up: two in each of nine steps.
    EXPECT_EQ(straggler->evidence.find("had to free its cache 18 times") != std::string::npos, retries > 0)
        << straggler->evidence;
    EXPECT_EQ(straggler->next_step.find("expandable_segments") != std::string::npos, retries > 0);
  }
}

/// It computes 14 ms, the other 10: a clock of 10/14 explains all of it, one of 13/14 only a quarter.
TEST(WhyLate, AStragglerWhoseGpuIsSlowedIsThat) {
  for (const std::uint32_t mhz : {1000U, 1300U}) {
    LateRun run;
    run.clocks(mhz, 1400);
    const store::Store& store = run.builder.build();
    const Summary summary = summarize(store);
    const bool slowed = mhz == 1000;
    EXPECT_EQ(
        text_of(*why_late(summary, 1))
                .find(
                    "its GPU ran at 1000 MHz, those of the others at 1400 MHz: it was at its power limit") !=
            std::string::npos,
        slowed);
    const auto findings = find(store, summary);
    const auto straggler = std::ranges::find(findings, "straggler", &Finding::id);
    ASSERT_NE(straggler, findings.end());
    EXPECT_EQ(straggler->evidence.find("Its GPU ran at 1000 MHz") != std::string::npos, slowed)
        << straggler->evidence;
    EXPECT_EQ(straggler->next_step.find("nvidia-smi") != std::string::npos, slowed) << straggler->next_step;
  }
}

TEST(WhyLate, RetriesOfALongStepAreNotThoseOfTheOthers) {
  LateRun run(true);
  run.allocator(2);
  const store::Store& store = run.builder.build();
  const auto findings = find(store, summarize(store));
  const auto straggler = std::ranges::find(findings, "straggler", &Finding::id);
  ASSERT_NE(straggler, findings.end());
  EXPECT_NE(straggler->evidence.find("had to free its cache 16 times"), std::string::npos)
      << straggler->evidence;
}

}  // namespace
}  // namespace shardscope::analysis
