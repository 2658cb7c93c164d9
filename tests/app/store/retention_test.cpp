// A recording that keeps the newest part of a run: what it keeps is as in one that keeps everything, of the
// rest it has the sums, and it says which is which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/store/block_codec.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/losses.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_sums.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {
namespace {

TEST_F(PartOfARun, KeepsTheNewestWholeAndTheSumsOfTheRest) {
  record_with({.max_bytes = 1'000'000});
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.format_version, 8);
  EXPECT_EQ(info.limits.max_bytes, 1'000'000U);
  EXPECT_GT(std::filesystem::file_size(file("whole.zscope")), 2'000'000U);
  EXPECT_LE(largest_, 1'000'000U) << "at every commit";
  EXPECT_LE(std::filesystem::file_size(file("part.zscope")), 1'000'000U);
  expect_sums_of_all(whole, part);
  const Store::NotKept gone = part.not_kept();
  EXPECT_GT(gone.events, part.event_count() / 2);
  EXPECT_EQ(info.events + gone.events, part.event_count());
  EXPECT_EQ(losses_of(part).absent_events, 0U);
  EXPECT_EQ(part.dropped_count(), 0U);
  expect_same_details(whole, part, gone.until_ns + 1, whole.end_ns());

  ASSERT_EQ(part.gaps().size(), 2U) << "one of each rank";
  std::uint64_t events = 0;
  for (const Gap& gap : part.gaps()) {
    EXPECT_TRUE(gap.not_kept);
    EXPECT_LT(gap.begin_ns, whole.end_ns() / 100);
    EXPECT_LE(gap.end_ns, gone.until_ns);
    events += gap.events;
    EXPECT_THAT(what_is_missing(gap), testing::HasSubstr("did not keep"));
  }
  EXPECT_EQ(events, gone.events);
}

TEST_F(PartOfARun, OfWhatWasNotKeptThereIsACoarsePicture) {
  record_with({.max_bytes = 1'000'000});
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  const std::int64_t gone = part.not_kept().until_ns;
  const auto busy = [](const Store& store, LaneId lane, std::uint8_t depth, std::int64_t begin,
                       std::int64_t end) {
    std::vector<Density> columns(60);
    store.density(lane, depth, begin, end, columns);
    double sum = 0;
    for (const Density& column : columns) sum += column.busy;
    return sum;
  };
  for (const LaneId lane : whole.lanes()) {
    for (std::uint8_t d = 0; d < whole.depth_count(lane); ++d) {
      EXPECT_NEAR(busy(whole, lane, d, 0, whole.end_ns()), busy(part, lane, d, 0, whole.end_ns()), 2)
          << int{d};
      EXPECT_NEAR(busy(whole, lane, d, 0, gone), busy(part, lane, d, 0, gone), 3) << int{d};
    }
    // Nothing is made up.
    EXPECT_TRUE(part.spans(lane, 0, 0, gone / 2).empty());
  }
  std::vector<MemorySample> columns(40);
  part.memory_columns(0, ev::MemoryPool::device, 0, whole.end_ns(), columns);
  for (const MemorySample& sample : columns) EXPECT_GT(sample.total(), 0) << sample.at_ns;
  EXPECT_GT(part.memory_at(0, ev::MemoryPool::device, gone / 2).total(), 0);
  EXPECT_TRUE(part.problems().empty());
}

/// Where events were deleted the state is not known: the initial one must not stand in for it.
TEST_F(PartOfARun, StatesAreKnownWhereEventsAre) {
  record_with({.max_bytes = 1'000'000});
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  for (const RankRow& row : whole.ranks()) {
    const auto gap = std::find_if(part.gaps().begin(), part.gaps().end(),
                                  [&](const Gap& one) { return one.not_kept && one.rank == row.rank; });
    ASSERT_NE(gap, part.gaps().end());
    std::size_t known = 0, unknown = 0;
    for (std::int64_t at = 0; at <= whole.end_ns(); at += whole.end_ns() / 500) {
      EXPECT_TRUE(whole.is_known(row.rank, at));
      EXPECT_EQ(part.is_known(row.rank, at), at > gap->end_ns || at < gap->begin_ns) << at;
      (part.is_known(row.rank, at) ? known : unknown)++;
    }
    EXPECT_GT(known, 10U);
    EXPECT_GT(unknown, 100U);
  }
}

TEST_F(PartOfARun, ByAge) {
  std::int64_t turn_ns = 0;
  {
    const EndlessRun run(2);
    Store once;
    fill_store(once, run.run());
    turn_ns = once.end_ns();
  }
  record_with({.max_age_ns = 4 * turn_ns, .moments = 0});
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  const std::int64_t gone = part.not_kept().until_ns;
  EXPECT_LT(gone, whole.end_ns() - 4 * turn_ns) << "all of that time is here";
  EXPECT_GT(gone, whole.end_ns() - 6 * turn_ns) << "and a block of each rank more at most";
  expect_sums_of_all(whole, part);
  expect_same_details(whole, part, gone + 1, whole.end_ns());
}

/// Where moments are kept what a step that is not judged yet needs is.
TEST_F(PartOfARun, ByAgeWithWhatLiesAroundTheNewestSteps) {
  record_with({.max_age_ns = 1000, .around_ns = 200'000'000});
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  const StepRow& pending = part.steps()[part.steps().size() - 2];
  const std::int64_t from = pending.begin_ns - 200'000'000;
  ASSERT_GT(part.not_kept().events, 0U);
  EXPECT_LT(part.not_kept().until_ns, from);
  expect_same_details(whole, part, part.not_kept().until_ns + 1, whole.end_ns());
}

/// More of them than the writer writes again anyway. The rows of the first attempt are in the file already.
TEST_F(PartOfARun, StepsThatBeginAgainHaveTheirNewestAttempt) {
  repeat_at_ = 12;
  record_with({.max_bytes = 400'000});
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  ASSERT_EQ(whole.rewinds().size(), 1U);
  EXPECT_EQ(whole.rewinds()[0].step, 4 * EndlessRun::kSteps);
  ASSERT_EQ(whole.steps().size(), (kTurns - 8) * EndlessRun::kSteps);
  ASSERT_GT(part.not_kept().until_ns, whole.rewinds()[0].at_ns);
  expect_sums_of_all(whole, part);
  for (std::size_t i = 1; i < whole.steps().size(); ++i)
    EXPECT_GT(whole.steps()[i].begin_ns, whole.steps()[i - 1].begin_ns) << i;
}

/// What is always kept of each rank is larger: no deletion helps, and that is said once.
TEST_F(PartOfARun, ALimitBelowWhatIsAlwaysKeptIsReportedOnce) {
  std::vector<std::string> warnings;
  const auto note = [&](RecordingWriter& part, int, const Store&) {
    if (std::string warning = part.take_warning(); !warning.empty()) warnings.push_back(std::move(warning));
  };
  record_with({.max_bytes = 100'000}, note);
  EXPECT_THAT(
      warnings,
      testing::ElementsAre(testing::ContainsRegex(
          "takes 0[.][0-9] MB, more than its limit of 0[.]1 MB [(]--max-size[)]: of each of its 2 ranks")));
  warnings.clear();
  for (const char* name : {"whole.zscope", "part.zscope"}) std::filesystem::remove(file(name));
  record_with({.max_bytes = 1'000'000}, note);
  EXPECT_THAT(warnings, testing::IsEmpty()) << "it fits";
}

/// As a node's collector records: its steps end without the ranks of other nodes, which is known only 10 s
/// after the first; rows written before get their end then.
TEST_F(PartOfARun, StepsOfANodeEndWithItsRanks) {
  world_ = 4;
  record_with({.max_bytes = 400'000});
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_THAT(info.problems, testing::ElementsAre("of the run's 4 ranks 2 are not in it: ranks 2, 3"));
  ASSERT_GT(part.not_kept().until_ns, 10 * kSecond);
  expect_sums_of_all(whole, part);
  for (const StepRow& row : part.steps()) EXPECT_NE(row.end_ns, kOpen) << row.step;
}

/// How long spans took is known of all of them.
TEST_F(PartOfARun, DistributionsAreOfTheWholeRun) {
  record_with({.max_bytes = 1'000'000});
  RecordingInfo info;
  const Store part = open("part.zscope", &info);
  ASSERT_GT(part.not_kept().events, 0U);
  const std::vector<SpanTotal> totals = part.span_totals();
  std::size_t of_ranks = 0;
  for (const auto& [key, sketch] : info.distributions) {
    if (key.rank == ev::kNoId) continue;
    ++of_ranks;
    const auto total = std::find_if(totals.begin(), totals.end(), [&key = key](const SpanTotal& t) {
      return t.lane == LaneId{key.rank, key.stream} && t.kind == key.kind && t.code == key.code;
    });
    ASSERT_NE(total, totals.end());
    EXPECT_EQ(sketch.count(), static_cast<std::uint64_t>(total->count));
    EXPECT_EQ(sketch.min_ns(), total->min_ns);
    EXPECT_EQ(sketch.max_ns(), total->max_ns);
  }
  EXPECT_EQ(of_ranks, totals.size());
  // Those of modules add up to those of ranks.
  const auto count = [&](bool modules) {
    std::uint64_t sum = 0;
    for (const auto& [key, sketch] : info.distributions) {
      if (key.kind == ev::EventKind::module_begin && (key.module != ev::kNoId) == modules)
        sum += sketch.count();
    }
    return sum;
  };
  EXPECT_GT(count(true), 0U);
  EXPECT_EQ(count(true), count(false));
}

TEST_F(PartOfARun, MomentsAreKeptWholeAndNamed) {
  std::int64_t at = 0;
  record_with({.max_bytes = 1'000'000, .around_ns = 200'000'000},
              [&](RecordingWriter& writer, int turn, const Store& totals) {
                if (turn != 5) return;
                at = totals.origin_ns() + totals.end_ns();
                writer.keep({.at_ns = at, .kind = "slow_step", .step = 99, .text = "step 99 took 3 s"});
              });
  const Store whole = open("whole.zscope"), part = open("part.zscope");
  ASSERT_EQ(part.moments().size(), 1U);
  const Moment& moment = part.moments().front();
  EXPECT_EQ(moment.at_ns, at - whole.origin_ns());
  EXPECT_EQ(moment.kind, "slow_step");
  EXPECT_EQ(moment.step, 99U);
  EXPECT_EQ(moment.rank, ev::kNoId);
  EXPECT_EQ(moment.text, "step 99 took 3 s");
  expect_sums_of_all(whole, part);
  expect_same_details(whole, part, moment.begin_ns, moment.end_ns);
  expect_same_details(whole, part, part.not_kept().until_ns + 1, whole.end_ns());
  // Before and behind it something was let go.
  ASSERT_EQ(part.gaps().size(), 4U);
  for (const Gap& gap : part.gaps())
    EXPECT_TRUE(gap.end_ns < moment.begin_ns || gap.begin_ns > moment.end_ns);
  EXPECT_LE(std::filesystem::file_size(file("part.zscope")), 1'000'000U);
}

/// What one look took in at once is given back to the disk by the next.
TEST_F(PartOfARun, AfterABurstTheFileIsBelowItsLimitAgain) {
  EndlessRun run(2);
  Store totals(Keep::totals);
  RecordingWriter writer(file("part.zscope"), {.max_bytes = 1'000'000});
  const auto add = [&](int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      run.again([&](const Chunk& chunk) {
        writer.append(chunk);
        totals.ingest(chunk);
      });
    }
    writer.retain(totals);
    writer.commit();
  };
  add(10);
  add(0);
  Database database(file("part.zscope"), Database::Access::read);
  EXPECT_LE(database.integer("PRAGMA page_count") * database.integer("PRAGMA page_size"), 1'000'000);
}

/// Of a trace that is invalidated over and over the first time is what later steps need.
TEST_F(PartOfARun, InvalidationsDoNotAddUp) {
  EndlessRun run(2);
  Store totals(Keep::totals);
  {
    RecordingWriter writer(file("part.zscope"), {.max_bytes = 1'000'000});
    for (int turn = 0; turn < 20; ++turn) {
      run.again([&](Chunk chunk) {
        ev::Event event;
        event.kind = ev::EventKind::trace_invalidated;
        event.ticks = chunk.events.back().ticks;
        for (int i = 0; i < 20; ++i) chunk.events.push_back(event);
        writer.append(chunk);
        totals.ingest(chunk);
      });
      writer.retain(totals);
      writer.commit();
    }
    writer.finish(totals);
    ASSERT_EQ(writer.error(), "");
  }
  std::map<std::int64_t, std::size_t> of_rank;
  Database database(file("part.zscope"), Database::Access::read);
  Statement rows = database.prepare("SELECT rank, rare FROM sums");
  while (rows.step()) {
    const std::span<const std::byte> bytes = rows.bytes(1);
    of_rank[rows.integer(0)] += Chunk::decode(bytes.data(), bytes.size()).events.size();
  }
  EXPECT_THAT(of_rank, testing::ElementsAre(testing::Pair(0, 1), testing::Pair(1, 1)));
  EXPECT_GT(open("part.zscope").instant_count(0, ev::EventKind::trace_invalidated), 1000U)
      << "all are counted";
}

/// Skipped steps come again and again; of each stretch the first names what they came from.
TEST_F(PartOfARun, OfEachStretchTheFirstGradientThatWasNotFiniteStays) {
  EndlessRun run(2);
  Store totals(Keep::totals);
  std::uint64_t events = 0;
  std::uint32_t step = 0;
  {
    RecordingWriter writer(file("part.zscope"), {.max_bytes = 1'000'000});
    for (int turn = 0; turn < 20; ++turn) {
      run.again([&](Chunk chunk) {
        ev::Event event;
        event.kind = ev::EventKind::gradient_not_finite;
        event.stream = ev::StreamId::host;
        event.a = ++step;
        event.ticks = chunk.events.back().ticks;
        for (int i = 0; i < 3; ++i) chunk.events.push_back(event);
        events += chunk.rank == 0 ? 3 : 0;
        writer.append(chunk);
        totals.ingest(chunk);
      });
      writer.retain(totals);
      writer.commit();
    }
    writer.finish(totals);
    ASSERT_EQ(writer.error(), "");
  }
  {
    Database database(file("part.zscope"), Database::Access::read);
    Statement rows = database.prepare("SELECT rare FROM sums");
    std::size_t sums = 0;
    for (; rows.step(); ++sums) {
      const std::span<const std::byte> bytes = rows.bytes(0);
      EXPECT_EQ(Chunk::decode(bytes.data(), bytes.size()).events.size(), 1U);
    }
    EXPECT_GT(sums, 2U);
  }
  const Store part = open("part.zscope");
  EXPECT_EQ(part.instant_count(0, ev::EventKind::gradient_not_finite), events) << "all are counted";
  const auto first = part.first_instant(0, ev::EventKind::gradient_not_finite);
  ASSERT_TRUE(first);
  EXPECT_LE(first->a, 2U) << "the first of the run";
}

TEST_F(PartOfARun, OneThatKeepsEverythingIsAsBefore) {
  record_with({});
  RecordingInfo info;
  const Store part = open("part.zscope", &info);
  EXPECT_EQ(info.format_version, 7);
  EXPECT_EQ(part.not_kept().events, 0U);
  EXPECT_EQ(part.gaps().size(), 0U);
}

}  // namespace
}  // namespace shardscope::store
