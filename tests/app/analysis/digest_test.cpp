// Which steps a digest takes where ranks lost some of them, came later, or there is little time.
#include "app/analysis/digest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "app/analysis/steps_ahead.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using ev::StreamId;

/// Rank 0 loses, while rank 1 is still in step 2, the end of step 3, steps 4 and 5 and the begin of step 6:
/// the steps after that are compared with the same steps of rank 1, not with those that come next in its
/// count.
TEST(Digest, StepsOfRanksAreMatchedByNumberAfterALoss) {
  constexpr std::int64_t kApart = 1'000'000;
  test::RunBuilder run(2);
  const auto step = [&](std::uint32_t rank, std::uint32_t number) {
    const std::int64_t begin = number * kApart + rank * 150'000;
    run.span(rank, begin, begin + 900'000, EventKind::step_begin, StreamId::host, number);
    run.span(rank, begin + 100'000, begin + 800'000, EventKind::module_begin, StreamId::compute, 1);
  };
  for (std::uint32_t number = 0; number < 10; ++number) step(1, number);
  for (std::uint32_t number = 0; number < 3; ++number) step(0, number);
  run.instant(0, 3 * kApart, EventKind::step_begin, StreamId::host, 3);
  run.instant(0, 3 * kApart + 3'000, EventKind::loss, StreamId::host);
  (void)run.build();
  run.drop(0, 12);
  run.instant(0, 6 * kApart + 950'000, EventKind::loss, StreamId::host);
  for (std::uint32_t number = 7; number < 10; ++number) step(0, number);
  const store::Store& store = run.build();
  Digest digest;
  digest.update(store);
  std::vector<std::uint32_t> numbers;
  for (const StepDigest& of : digest.steps()) {
    numbers.push_back(of.step);
    ASSERT_EQ(of.ranks.size(), 2U);
    for (const RankStep& rank : of.ranks) {
      EXPECT_EQ(rank.begin_ns, of.step * kApart + rank.rank * 150'000) << "rank " << rank.rank;
      EXPECT_EQ(rank.end_ns - rank.begin_ns, rank.rank == 0 && of.step == 3 ? 1'050'000 : 900'000);
    }
    EXPECT_EQ(of.lacks_events(), of.step == 3) << of.step;
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 7, 8, 9}));
}

/// Rank 0 loses only the end of step 3 and has begun step 4 when rank 1 ends step 3: step 3 lasts up to
/// there, and step 4 is compared like the others.
TEST(Digest, AStepWhoseEndWasLostLastsNoLongerThanToTheRanksNextStep) {
  constexpr std::int64_t kApart = 1'000'000;
  test::RunBuilder run(2);
  const auto step = [&](std::uint32_t rank, std::uint32_t number) {
    const std::int64_t begin = number * kApart + rank * 150'000;
    run.span(rank, begin, begin + 900'000, EventKind::step_begin, StreamId::host, number);
  };
  for (std::uint32_t number = 0; number < 6; ++number) step(1, number);
  for (std::uint32_t number = 0; number < 3; ++number) step(0, number);
  run.instant(0, 3 * kApart, EventKind::step_begin, StreamId::host, 3);
  run.span(0, 3 * kApart + 100'000, 3 * kApart + 800'000, EventKind::module_begin, StreamId::compute, 1);
  (void)run.build();
  run.drop(0, 1);
  for (std::uint32_t number = 4; number < 6; ++number) step(0, number);
  const store::Store& store = run.build();
  Digest digest;
  digest.update(store);
  std::vector<std::uint32_t> numbers;
  for (const StepDigest& of : digest.steps()) {
    numbers.push_back(of.step);
    EXPECT_EQ(of.ranks.at(0).end_ns, of.step * kApart + (of.step == 3 ? kApart : 900'000)) << of.step;
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

void ingest_steps(store::Store& store, std::uint32_t rank, std::uint32_t first, std::uint32_t last,
                  std::int64_t apart_ns) {
  store::Chunk chunk;
  chunk.rank = rank;
  for (std::uint32_t number = first; number <= last; ++number) {
    const auto event = [&](std::int64_t at, EventKind kind) {
      chunk.events.push_back(
          {static_cast<std::uint64_t>(at), kind, StreamId::host, 0, number, ev::kNoId, ev::kNoId, 0, 0});
    };
    event(number * apart_ns, EventKind::step_begin);
    event(number * apart_ns + 900, EventKind::step_end);
  }
  store.ingest(chunk);
}

TEST(Digest, ARankThatAppearsWhileAStepIsHalfTakenMixesNoSteps) {
  store::Store store;
  for (const std::uint32_t rank : {0U, 1U}) ingest_steps(store, rank, 0, 6, 1000);
  Digest digest;
  EXPECT_FALSE(digest.update(store, std::chrono::nanoseconds(0))) << "one rank of step 0 is taken";
  ingest_steps(store, 2, 3, 6, 1000);
  while (!digest.update(store, std::chrono::nanoseconds(0))) {
  }
  std::vector<std::uint32_t> numbers;
  for (const StepDigest& of : digest.steps()) {
    numbers.push_back(of.step);
    ASSERT_EQ(of.ranks.size(), 3U);
    for (const RankStep& rank : of.ranks) EXPECT_EQ(rank.begin_ns, of.step * 1000) << "rank " << rank.rank;
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{3, 4, 5, 6}));
}

TEST(Digest, SkippingStepsThatARankLacksKeepsToTheTimeThereIs) {
  store::Store store;
  ingest_steps(store, 0, 0, 100, 1000);
  ingest_steps(store, 1, 100, 100, 1000);
  Digest digest;
  std::size_t rounds = 1;
  while (!digest.update(store, std::chrono::nanoseconds(0))) ++rounds;
  EXPECT_GE(rounds, 100U);
  ASSERT_EQ(digest.steps().size(), 1U);
  EXPECT_EQ(digest.steps().front().step, 100U);
}

TEST(Digest, GrowsWithTheRunToTheSameFiguresAsAtOnce) {
  test::RunBuilder run(2);
  Digest digest;
  for (std::uint32_t step = 0; step < 5; ++step) {
    const std::int64_t at = step * 10'000;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.span(rank, at, at + 5000, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 100 * step, at + 3000, EventKind::module_begin, StreamId::compute, 1);
      run.span(rank, at + 2000, at + 4000 + rank, EventKind::collective_begin, StreamId::gather, step, step,
               test::kGatherOp, 10, 40);
    }
    EXPECT_TRUE(digest.update(run.build()));
    ASSERT_EQ(digest.steps().size(), step + 1);
  }
  EXPECT_EQ(to_json(summarize(run.build(), digest)), to_json(summarize(run.build())));
}

/// More ranks than the store has room for are read some steps ahead. Rank 3 has lost events of step 7, whose
/// length others say; rank 5 goes on with step 12, and rank 6 is held within step 2.
TEST(Digest, ManyRanksGiveTheSameFiguresReadAheadAsStepByStep) {
  constexpr std::uint32_t kRanks = 2 * StepsAhead::kManyRanks, kSteps = 20;
  constexpr std::int64_t kApart = 1'000'000;
  test::RunBuilder run(kRanks);
  const auto step = [&](std::uint32_t rank, std::uint32_t number) {
    const std::int64_t at = number * kApart + rank * 500;
    run.span(rank, at, at + 900'000, EventKind::step_begin, StreamId::host, number);
    run.span(rank, at + 1000 * (rank % 7), at + 600'000, EventKind::module_begin, StreamId::compute, 1);
    run.span(rank, at + 600'000, at + 640'000 + 10 * rank + number, EventKind::fetch_wait_begin,
             StreamId::compute, 1, number);
    run.span(rank, at + 500'000 + 20 * rank, at + 700'000, EventKind::collective_begin, StreamId::gather,
             number, number, test::kGatherOp, 10, 40);
    if (rank == 6 && number == 2)
      run.span(rank, at + 100'000, at + 200'000, EventKind::paused_begin, StreamId::host);
  };
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::uint32_t number = 0; number < 7; ++number) step(rank, number);
    if (rank == 3) run.instant(rank, 7 * kApart + 1500, EventKind::step_begin, StreamId::host, 7);
  }
  (void)run.build();
  run.drop(3, 20);
  run.drop(5, 90);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::uint32_t number = rank == 5 ? 12 : rank == 3 ? 8 : 7; number < kSteps; ++number)
      step(rank, number);
  }
  store::Store& store = run.build();
  Digest at_once, by_turns;
  EXPECT_TRUE(at_once.update(store));
  while (!by_turns.update(store, std::chrono::nanoseconds(0))) {
  }
  ASSERT_EQ(at_once.steps().size(), by_turns.steps().size());
  ASSERT_GE(at_once.steps().size(), 15U);
  EXPECT_EQ(to_json(summarize(store, at_once)), to_json(summarize(store, by_turns)));
  ASSERT_EQ(at_once.longest_waits().size(), by_turns.longest_waits().size());
  for (std::size_t i = 0; i < at_once.steps().size(); ++i) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const RankStep& one = at_once.steps()[i].ranks.at(rank);
      EXPECT_EQ(one.end_ns, by_turns.steps()[i].ranks.at(rank).end_ns) << "step " << i << " rank " << rank;
    }
  }
  for (std::size_t i = 0; i < at_once.longest_waits().size(); ++i) {
    EXPECT_EQ(at_once.longest_waits()[i].rank, by_turns.longest_waits()[i].rank);
    EXPECT_EQ(at_once.longest_waits()[i].span.begin_ns, by_turns.longest_waits()[i].span.begin_ns);
  }
}

/// What a digest is given a time for, of a run that is looked at up to then, is not taken ahead of it.
TEST(Digest, StepsReadAheadAreTakenWhenTheyAreAllowed) {
  store::Store store;
  for (std::uint32_t rank = 0; rank <= StepsAhead::kManyRanks; ++rank) ingest_steps(store, rank, 0, 9, 1000);
  Digest digest;
  EXPECT_TRUE(digest.update(store, std::nullopt, 3950));
  EXPECT_EQ(digest.steps().size(), 4U);
  EXPECT_TRUE(digest.update(store, std::nullopt, 5950));
  EXPECT_EQ(digest.steps().size(), 6U);
  EXPECT_TRUE(digest.update(store));
  EXPECT_EQ(digest.steps().size(), 10U);
}

}  // namespace
}  // namespace shardscope::analysis
