// A recording that keeps the newest part of a run: what it keeps is as in one that keeps everything, of the
// rest it has the sums, and it says which is which.
#include "app/store/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <random>

#include "app/store/block_codec.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/losses.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_sums.h"
#include "tests/app/store/endless_run.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(RetentionPlan, LetsGoWhatIsTooOldButForTheNewestOfARank) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond});
  plan.wrote(0, 1, 0, 1 * kSecond, 100);
  plan.wrote(1, 2, 0, 2 * kSecond, 100);
  for (std::int64_t i = 0; i < 20; ++i) plan.wrote(0, 3 + i, i * kSecond, (i + 1) * kSecond, 100);
  const auto due = plan.due(0);
  ASSERT_EQ(due.size(), 1U) << "rank 1 has only one block";
  EXPECT_EQ(due.at(0).size(), 10U);
  EXPECT_EQ(due.at(0).front(), 1);
  EXPECT_EQ(due.at(0).back(), 11) << "ended at 9 s";
  EXPECT_TRUE(plan.due(0).empty());
}

TEST(RetentionPlan, KeepsBelowASizeOldestFirst) {
  RetentionPlan plan({.max_bytes = 1000});
  for (std::int64_t i = 0; i < 10; ++i)
    plan.wrote(static_cast<std::uint32_t>(i % 2), i + 1, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.due(900).empty());
  const auto due = plan.due(1000);
  EXPECT_EQ(due.at(0), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(due.at(1), (std::vector<std::int64_t>{2}));
}

TEST(RetentionPlan, AMomentStaysUntilNothingElseMakesRoom) {
  RetentionPlan plan({.max_bytes = 1000, .around_ns = kSecond});
  for (std::int64_t i = 0; i < 10; ++i) plan.wrote(0, i + 1, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = kSecond / 2, .kind = "slow_step", .text = "slow"}));
  EXPECT_FALSE(plan.keep({.at_ns = kSecond, .kind = "slow_step", .text = "within the one before"}));
  EXPECT_EQ(plan.due(1000).at(0), (std::vector<std::int64_t>{3, 4})) << "1 and 2 lie around it";
  ASSERT_EQ(plan.moments().size(), 1U);
  const auto due = plan.due(5000);
  EXPECT_EQ(due.at(0).size(), 7U) << "all but the newest";
  EXPECT_TRUE(plan.moments().empty());
}

TEST(RetentionPlan, MomentsGoByNumberAndAge) {
  RetentionPlan plan(
      {.max_age_ns = kSecond, .moments = 2, .around_ns = kSecond, .moment_age_ns = 100 * kSecond});
  for (const std::int64_t at : {10, 20, 30})
    EXPECT_TRUE(plan.keep({.at_ns = at * kSecond, .kind = "loss_jump", .text = ""}));
  ASSERT_EQ(plan.moments().size(), 2U);
  EXPECT_EQ(plan.moments().front().at_ns, 20 * kSecond);
  plan.reached(125 * kSecond);
  (void)plan.due(0);
  ASSERT_EQ(plan.moments().size(), 1U);
  EXPECT_EQ(plan.moments().front().at_ns, 30 * kSecond);
}

/// A clock that jumped, or a time that was never one: one event must not make all others old.
TEST(RetentionPlan, ATimeThatIsYetToComeMakesNothingOld) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .moment_age_ns = 10 * kSecond});
  for (std::int64_t i = 0; i < 5; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = kSecond, .kind = "request", .text = ""}));
  plan.wrote(1, 6, 4 * kSecond, 3600 * kSecond, 100);
  plan.now(5 * kSecond);
  EXPECT_TRUE(plan.due(0).empty());
  EXPECT_EQ(plan.moments().size(), 1U);
  plan.now(5 * kSecond + INT64_C(31'000'000'000) + 10 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 4U) << "as time goes on they do get old";
  EXPECT_TRUE(plan.moments().empty());
}

TEST(RetentionPlan, AMomentThatLastedIsKeptToItsEnd) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .around_ns = 30 * kSecond});
  for (std::int64_t i = 0; i < 60; ++i) plan.wrote(0, 1 + i, i * 10 * kSecond, (i + 1) * 10 * kSecond, 100);
  const auto slow = [&](std::int64_t begin, std::int64_t end) {
    return plan.keep(
        {.at_ns = begin * kSecond, .kind = "slow_step", .text = "", .lasts_until_ns = end * kSecond});
  };
  EXPECT_TRUE(slow(100, 300));
  EXPECT_EQ(plan.moments().front().begin_ns, 70 * kSecond);
  EXPECT_EQ(plan.moments().front().end_ns, 330 * kSecond);
  EXPECT_FALSE(slow(300, 310)) << "lies within what is kept";
  EXPECT_TRUE(slow(310, 340)) << "its end does not";
  const auto due = plan.due(0);
  EXPECT_EQ(std::count_if(due.at(0).begin(), due.at(0).end(), [](auto id) { return id >= 7 && id <= 38; }), 0)
      << "60 to 380 s";
  EXPECT_EQ(due.at(0).size(), 6U + 58U - 38U);
}

/// Their moment gone, blocks are as old as they are.
TEST(RetentionPlan, WhatAForgottenMomentKeptGoes) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .moments = 1, .around_ns = kSecond});
  for (std::int64_t i = 0; i < 50; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  EXPECT_TRUE(plan.keep({.at_ns = 5 * kSecond, .kind = "request", .text = ""}));
  EXPECT_TRUE(plan.keep({.at_ns = 48 * kSecond, .kind = "request", .text = ""}));
  EXPECT_EQ(plan.due(0).at(0).size(), 39U) << "all that ended before 40 s";
  EXPECT_TRUE(plan.keep({.at_ns = 60 * kSecond, .kind = "request", .text = ""}));
  for (std::int64_t i = 50; i < 62; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  plan.reached(90 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 19U) << "59 s to 61 s stays, and the newest: 59 to 62";
}

/// A step is judged when the next has begun; until then what lies around it must be there.
TEST(RetentionPlan, AStepThatGoesOnIsNotTooOld) {
  RetentionPlan plan({.max_age_ns = 10 * kSecond, .around_ns = 5 * kSecond});
  for (std::int64_t i = 0; i < 60; ++i) plan.wrote(0, 1 + i, i * kSecond, (i + 1) * kSecond, 100);
  plan.pending(30 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 24U) << "what ended before 25 s";
  plan.reached(1000 * kSecond);
  EXPECT_EQ(plan.due(0).at(0).size(), 35U) << "a step without an end does not keep for ever";
}

/// One run, recorded whole and with limits.
class PartOfARun : public RecordingTest {
 protected:
  static constexpr int kTurns = 20;
  /// `at_turn(writer, turn, origin)` is called before each turn.
  template <typename AtTurn>
  void record_with(const Retention& retention, AtTurn at_turn, bool finished = true) {
    EndlessRun run(2);
    Store totals(Keep::totals);
    RecordingWriter whole(file("whole.zscope")), part(file("part.zscope"), retention);
    for (const ev::RunTables& tables : run.run().tables) {
      for (RecordingWriter* writer : {&whole, &part}) writer->tables(tables.rank, tables);
      totals.set_tables(tables.rank, tables);
    }
    for (int turn = 0; turn < kTurns; ++turn) {
      at_turn(part, turn, totals);
      run.again([&](const Chunk& chunk) {
        whole.append(chunk);
        part.append(chunk);
        totals.ingest(chunk);
      });
      part.retain(totals);
      part.commit();
      largest_ = std::max(largest_, std::filesystem::file_size(file("part.zscope")));
    }
    for (const RankRow& row : run.run().ranks) {
      RankRow now = row;
      now.events = 0;
      totals.set_rank(now);
    }
    whole.finish(totals);
    if (!finished) ::kill(::getpid(), SIGKILL);
    part.finish(totals);
    EXPECT_EQ(part.error(), "");
  }
  void record_with(const Retention& retention) {
    record_with(retention, [](RecordingWriter&, int, const Store&) {});
  }
  [[nodiscard]] Store open(const char* name, RecordingInfo* info = nullptr) const {
    return open_recording(file(name), info);
  }
  std::uintmax_t largest_ = 0;
};

void expect_sums_of_all(const Store& whole, const Store& part) {
  EXPECT_EQ(part.event_count(), whole.event_count());
  EXPECT_EQ(part.end_ns(), whole.end_ns());
  EXPECT_EQ(part.origin_ns(), whole.origin_ns());
  ASSERT_EQ(part.steps().size(), whole.steps().size());
  for (std::size_t i = 0; i < whole.steps().size(); ++i) {
    const StepRow &a = whole.steps()[i], &b = part.steps()[i];
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.begin_ns, b.begin_ns) << a.step;
    EXPECT_EQ(a.end_ns, b.end_ns) << a.step;
    EXPECT_EQ(a.tokens, b.tokens) << a.step;
    EXPECT_THAT(a.loss, testing::NanSensitiveDoubleEq(b.loss)) << a.step;
    EXPECT_THAT(a.learning_rate, testing::NanSensitiveDoubleEq(b.learning_rate)) << a.step;
  }
  const auto x = whole.span_totals(), y = part.span_totals();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].lane, y[i].lane);
    EXPECT_EQ(x[i].count, y[i].count);
    EXPECT_EQ(x[i].total_ns, y[i].total_ns);
    EXPECT_EQ(x[i].min_ns, y[i].min_ns);
    EXPECT_EQ(x[i].max_ns, y[i].max_ns);
  }
  for (const RankRow& row : whole.ranks()) {
    const auto a = whole.memory_peak(row.rank, ev::MemoryPool::device);
    const auto b = part.memory_peak(row.rank, ev::MemoryPool::device);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->bytes, b->bytes);
    EXPECT_EQ(a->at_ns, b->at_ns);
    for (const ev::EventKind kind : {ev::EventKind::param_status, ev::EventKind::fetch_decision})
      EXPECT_EQ(whole.instant_count(row.rank, kind), part.instant_count(row.rank, kind));
  }
}

/// Spans, instants and states in [from, until). `memory`: as well; behind the last block of a recording that
/// was cut off it is made anew, and this run, which begins over and over, frees nothing of what it held
/// before.
void expect_same_details(const Store& whole, const Store& part, std::int64_t from, std::int64_t until,
                         bool memory = true) {
  ASSERT_LT(from, until);
  ASSERT_EQ(whole.lanes(), part.lanes());
  for (const LaneId lane : whole.lanes()) {
    for (std::uint8_t d = 0; d < whole.depth_count(lane); ++d)
      expect_same_spans(whole.spans(lane, d, from, until), part.spans(lane, d, from, until), "kept");
  }
  std::vector<ParamState> x(whole.tables().params.size()), y(x.size());
  std::mt19937_64 random(7);
  for (const RankRow& row : whole.ranks()) {
    expect_same_events(whole.instants(row.rank, from, until), part.instants(row.rank, from, until));
    for (int i = 0; i < 20; ++i) {
      const std::int64_t at =
          from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(until - from));
      whole.param_states(row.rank, at, x);
      part.param_states(row.rank, at, y);
      for (std::size_t p = 0; p < x.size(); ++p) ASSERT_EQ(x[p].status, y[p].status) << at;
      if (!memory) continue;
      ASSERT_EQ(whole.memory_at(row.rank, ev::MemoryPool::device, at).bytes,
                part.memory_at(row.rank, ev::MemoryPool::device, at).bytes);
    }
  }
}

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

TEST_F(PartOfARun, AKilledRecordingSaysTheSame) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    record_with(
        {.max_bytes = 1'000'000}, [](RecordingWriter&, int, const Store&) {}, false);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_FALSE(info.complete);
  ASSERT_EQ(info.problems.size(), 1U) << info.problems.back();
  EXPECT_TRUE(mentions(info, "not finished"));
  expect_sums_of_all(whole, part);
  EXPECT_GT(part.not_kept().events, part.event_count() / 2);
  expect_same_details(whole, part, part.not_kept().until_ns + 1, whole.end_ns(), false);
}

/// Without the blocks everything is made from what events there are; sums stay sums.
TEST_F(PartOfARun, OpensWhereItsBlocksAreDamaged) {
  record_with({.max_bytes = 1'000'000});
  {
    Database database(file("part.zscope"), Database::Access::create);
    database.execute("UPDATE blocks SET bytes = substr(bytes, 2) WHERE id = (SELECT max(id) FROM blocks)");
  }
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_FALSE(info.problems.empty());
  EXPECT_EQ(part.event_count(), whole.event_count());
  EXPECT_GT(part.not_kept().events, 0U);
  const auto x = whole.span_totals(), y = part.span_totals();
  ASSERT_EQ(x.size(), y.size());
  // From a while after the beginning on, when every span that was open then has ended.
  const std::int64_t from = part.not_kept().until_ns + (whole.end_ns() - part.not_kept().until_ns) / 2;
  for (const LaneId lane : whole.lanes())
    expect_same_spans(whole.spans(lane, 0, from, whole.end_ns()), part.spans(lane, 0, from, whole.end_ns()),
                      "later");
}

/// While it is recorded, what was listed is deleted: that is neither damage nor unknown.
TEST_F(PartOfARun, WhatGoesWhileItIsOpenWasNotKept) {
  std::optional<Store> live;
  RecordingInfo of_live;
  std::int64_t gone_then = 0;
  const auto look = [&](std::int64_t from) {
    for (const LaneId lane : live->lanes()) (void)live->spans(lane, 0, from, Store::kEnd);
    return live->not_kept();
  };
  record_with({.max_bytes = 1'000'000}, [&](RecordingWriter&, int turn, const Store&) {
    if (turn == 12) {
      live.emplace(open_recording(file("part.zscope"), &of_live, Verify::as_read));
      gone_then = live->not_kept().until_ns;
      ASSERT_GT(gone_then, 0);
    }
    if (turn != 15) return;
    const Store::NotKept now = look(gone_then);
    EXPECT_GT(now.until_ns, gone_then);
    EXPECT_TRUE(live->problems().empty()) << live->problems().front();
  });
  const Store::NotKept now = look(gone_then);
  EXPECT_THAT(live->problems(), testing::IsEmpty()) << "its recorder has ended since";
  std::uint64_t events = 0;
  for (const Gap& gap : live->gaps()) {
    EXPECT_FALSE(gap.damaged);
    if (gap.not_kept) events += gap.events;
  }
  EXPECT_EQ(events, now.events);
  std::vector<Density> columns(50);
  live->density(live->lanes().front(), 0, gone_then, now.until_ns, columns);
  EXPECT_TRUE(std::any_of(columns.begin(), columns.end(), [](const Density& one) { return one.count > 0; }))
      << "its coarse picture stays";
}

/// A row that is missing where no sum stands for it is damage.
TEST_F(PartOfARun, ARowThatNobodyLetGoIsDamage) {
  record_with({.max_bytes = 1'000'000});
  RecordingInfo info;
  const Store part = open_recording(file("part.zscope"), &info, Verify::as_read);
  Database(file("part.zscope"), Database::Access::create)
      .execute("DELETE FROM chunks WHERE id = (SELECT max(id) FROM blocks)");
  for (const LaneId lane : part.lanes()) (void)part.spans(lane, 0);
  ASSERT_EQ(part.problems().size(), 1U);
  EXPECT_THAT(part.problems().front(), testing::HasSubstr("is not in the recording any more"));
}

TEST_F(PartOfARun, OpensWhereItsSumsAreDamaged) {
  const auto damage = [&](const char* sql, const char* named) {
    std::filesystem::copy_file(file("part.zscope"), file("bad.zscope"),
                               std::filesystem::copy_options::overwrite_existing);
    Database(file("bad.zscope"), Database::Access::create).execute(sql);
    RecordingInfo info;
    const Store store = open("bad.zscope", &info);
    EXPECT_TRUE(mentions(info, named)) << sql;
    EXPECT_GT(store.event_count(), 0U);
    for (const Moment& moment : store.moments()) EXPECT_GT(moment.begin_ns, -kSecond * 3600) << sql;
  };
  record_with({.max_bytes = 1'000'000}, [](RecordingWriter& writer, int turn, const Store& totals) {
    if (turn == 3)
      writer.keep({.at_ns = totals.origin_ns() + totals.end_ns(), .kind = "request", .text = ""});
  });
  // One twice, so that the second is out of order.
  damage(
      "INSERT INTO sums SELECT id + 100000, rank, sequence, begin_ns, end_ns, events, parts, bytes, rare "
      "FROM sums "
      "WHERE id = (SELECT min(id) FROM sums)",
      "what was not kept");
  // Behind the chunks that follow it.
  damage("UPDATE sums SET id = (SELECT max(id) + 1 FROM chunks) WHERE id = (SELECT max(id) FROM sums)",
         "is not in its place");
  damage(
      "DELETE FROM moments; INSERT INTO moments VALUES(NULL, 0, -9223372036854775808, 0, 'request', -1, -1, "
      "'')",
      "what was not kept");
  // Steps of which nothing was deleted.
  damage("DELETE FROM sums", "chunks are missing");
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

/// Where counts of the two shortest sums do not fit one, others are joined.
TEST_F(PartOfARun, SumsThatDoNotFitAreLeftApart) {
  Database database(file("sums.zscope"), Database::Access::create);
  database.execute(kRecordingSchema);
  SumsWriter sums(database, {.max_age_ns = 1, .moments = 0});
  const Store none;
  constexpr std::uint64_t kBlocks = 60;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    Block block;
    block.sequence = i;
    block.parts = 1;
    // The first ones are the shortest.
    const auto at = static_cast<std::int64_t>(i < 4 ? i * 10 : i * 1000);
    block.begin_ns = at;
    block.end_ns = at + 1;
    block.counts.push_back(
        {.kind = ev::EventKind::param_status, .code = 0, .count = i < 4 ? 3'000'000'000U : 1U});
    const auto id = static_cast<std::int64_t>(i + 1);
    Statement add = database.prepare("INSERT INTO blocks VALUES(?1, ?2)");
    add.bind(1, id).bind(2, encode_block(block)).run();
    sums.wrote(block, id, 100);
    sums.retain(database, none, INT64_MAX);
  }
  EXPECT_EQ(database.integer("SELECT count(*) FROM sums"), 32);
  EXPECT_EQ(database.integer("SELECT count(*) FROM sums WHERE parts = 1 AND sequence < 4"), 4);
  EXPECT_EQ(database.integer("SELECT sum(parts) FROM sums"), static_cast<std::int64_t>(kBlocks) - 1)
      << "all but the newest";
}

TEST(Sums, ALossWithinOneIsSomewhereInIt) {
  Store store;
  Block sum;
  sum.parts = 3;
  sum.begin_ns = 1000;
  sum.end_ns = 2000;
  sum.lost_before = 5;
  sum.gap = true;
  store.append_sum(sum, 100, {}, true);
  const auto lost = std::find_if(store.gaps().begin(), store.gaps().end(),
                                 [](const Gap& gap) { return gap.messages == 5; });
  ASSERT_NE(lost, store.gaps().end());
  EXPECT_EQ(lost->begin_ns, 0);
  EXPECT_EQ(lost->end_ns, 1000);
}

TEST_F(PartOfARun, OneThatKeepsEverythingIsAsBefore) {
  record_with({});
  RecordingInfo info;
  const Store part = open("part.zscope", &info);
  EXPECT_EQ(info.format_version, 7) << "programs of before read it";
  EXPECT_EQ(part.not_kept().events, 0U);
  EXPECT_EQ(part.gaps().size(), 0U);
}

}  // namespace
}  // namespace shardscope::store
