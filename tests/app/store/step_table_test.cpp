// When a step has ended: with ranks of another node, ranks that never come, ranks that come late, blocks of
// ranks in any order. And what becomes of steps that ranks repeat after a restart.
#include "app/store/step_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::store {
namespace {

using ev::EventKind;

constexpr std::int64_t kSecond = 1'000'000'000;

class Table {
 public:
  explicit Table(std::uint32_t world) { table_.set_world(world); }
  void begin(std::uint32_t rank, std::uint32_t step, std::int64_t at_ns) {
    add(rank, step, at_ns, EventKind::step_begin);
  }
  void end(std::uint32_t rank, std::uint32_t step, std::int64_t at_ns) {
    add(rank, step, at_ns, EventKind::step_end);
  }
  /// Step n is from second n to second n + 1, less a millisecond; later by a microsecond on each further
  /// rank.
  void steps(const std::vector<std::uint32_t>& ranks, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t step = first; step <= last; ++step) {
      for (const std::uint32_t rank : ranks) begin(rank, step, begin_of(rank, step));
      for (const std::uint32_t rank : ranks) end(rank, step, end_of(rank, step));
    }
  }
  static std::int64_t begin_of(std::uint32_t rank, std::uint32_t step) {
    return step * kSecond + rank * 1000;
  }
  static std::int64_t end_of(std::uint32_t rank, std::uint32_t step) {
    return (step + 1) * kSecond - 1'000'000 + rank * 1000;
  }
  /// kOpen: it has not ended.
  [[nodiscard]] std::int64_t end_of(std::uint32_t step) const {
    for (const StepRow& row : table_.rows()) {
      if (row.step == step) return row.end_ns;
    }
    ADD_FAILURE() << "there is no step " << step;
    return 0;
  }
  [[nodiscard]] std::size_t ended() const {
    std::size_t count = 0;
    for (const StepRow& row : table_.rows()) count += row.end_ns == kOpen ? 0 : 1;
    return count;
  }
  [[nodiscard]] std::span<const StepRow> rows() const { return table_.rows(); }
  [[nodiscard]] std::span<const Rewind> rewinds() const { return table_.rewinds(); }
  StepTable& table() { return table_; }

 private:
  void add(std::uint32_t rank, std::uint32_t step, std::int64_t at_ns, EventKind kind) {
    table_.add(rank, {static_cast<std::uint64_t>(at_ns), kind, ev::StreamId::host, 0, step}, at_ns);
  }
  StepTable table_;
};

TEST(StepTable, AStepEndsWithItsLastRank) {
  Table run(2);
  run.begin(0, 0, 0);
  run.begin(1, 0, 5);
  run.end(0, 0, 10);
  EXPECT_EQ(run.end_of(0), kOpen);
  run.end(1, 0, 20);
  EXPECT_EQ(run.end_of(0), 20);
}

/// A node's collector receives the ranks of its node only.
TEST(StepTable, RanksThatHaveNotComeIn10SecondsAreNotWaitedFor) {
  Table node(4);
  node.steps({0, 1}, 0, 9);
  EXPECT_EQ(node.ended(), 0U) << "the others may still come";
  node.steps({0, 1}, 10, 12);
  EXPECT_EQ(node.ended(), 13U) << "the earlier steps, too";
  EXPECT_EQ(node.end_of(0), Table::end_of(1, 0));
  node.begin(0, 13, Table::begin_of(0, 13));
  node.begin(1, 13, Table::begin_of(1, 13));
  node.end(0, 13, Table::end_of(0, 13));
  EXPECT_EQ(node.end_of(13), kOpen) << "ranks that have come are waited for";
}

TEST(StepTable, ARankThatComesLateIsWaitedForFromItsFirstStep) {
  Table run(4);
  run.steps({0, 1, 2}, 0, 19);
  EXPECT_EQ(run.ended(), 20U);
  run.begin(3, 20, Table::begin_of(3, 20));
  EXPECT_EQ(run.ended(), 20U) << "the steps before were without it";
  run.steps({0, 1, 2}, 20, 20);
  EXPECT_EQ(run.end_of(20), kOpen);
  run.end(3, 20, Table::end_of(3, 20));
  EXPECT_EQ(run.end_of(20), Table::end_of(3, 20));
}

/// As a recording is read: a block of one rank has many steps.
TEST(StepTable, BlocksOfRanksMayBeReadInAnyOrder) {
  Table run(2);
  run.steps({1}, 0, 30);
  run.steps({0}, 0, 29);
  run.begin(0, 30, Table::begin_of(0, 30));
  EXPECT_EQ(run.ended(), 30U);
  EXPECT_EQ(run.end_of(7), Table::end_of(1, 7));
  EXPECT_EQ(run.end_of(30), kOpen) << "rank 0 hangs in it";
}

TEST(StepTable, WhereEverythingHasBeenReadNoRankIsWaitedFor) {
  Table run(4);
  run.steps({0, 1}, 0, 2);
  EXPECT_EQ(run.ended(), 0U);
  run.table().wait_no_longer();
  EXPECT_EQ(run.ended(), 3U);
}

TEST(StepTable, TheWaitIsOfTheRunsTimeAlsoWhereItsOriginMoves) {
  Table node(4);
  node.steps({0}, 0, 0);
  node.table().shift(100 * kSecond);
  node.begin(0, 101, Table::begin_of(0, 101));
  node.end(0, 101, Table::end_of(0, 101));
  EXPECT_EQ(node.ended(), 0U) << "a second after the first end";
}

/// Started again from a checkpoint: [Note: steps that begin again].
class Restarted : public testing::Test {
 protected:
  /// Steps 0 to 9 of both ranks, then, 100 s later, from step 6 on.
  void first_attempt(const std::vector<std::uint32_t>& ranks) {
    run_.steps(ranks, 0, 8);
    for (const std::uint32_t rank : ranks) run_.begin(rank, 9, Table::begin_of(rank, 9));
  }
  void second_attempt(std::uint32_t rank, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t step = first; step <= last; ++step) {
      run_.begin(rank, step, kLater + Table::begin_of(rank, step));
      run_.end(rank, step, kLater + Table::end_of(rank, step));
    }
  }
  void expect_two_attempts(std::uint32_t last) const {
    const auto rows = run_.rows();
    ASSERT_EQ(rows.size(), last + 1U);
    for (std::uint32_t step = 0; step <= last; ++step) {
      const std::int64_t later = step < 6 ? 0 : kLater;
      EXPECT_EQ(rows[step].step, step);
      EXPECT_EQ(rows[step].begin_ns, later + Table::begin_of(0, step)) << step;
      EXPECT_EQ(rows[step].end_ns, later + Table::end_of(1, step)) << step;
    }
    ASSERT_EQ(run_.rewinds().size(), 1U) << "of all ranks one";
    EXPECT_EQ(run_.rewinds()[0].step, 6U);
  }
  static constexpr std::int64_t kLater = 100 * kSecond;
  Table run_{2};
};

TEST_F(Restarted, TheNewestAttemptOfAStepCounts) {
  first_attempt({0, 1});
  second_attempt(0, 6, 6);
  EXPECT_EQ(run_.rows().size(), 7U) << "what came after the checkpoint was not kept";
  EXPECT_EQ(run_.end_of(6), kOpen);
  second_attempt(1, 6, 6);
  expect_two_attempts(6);
  for (const std::uint32_t step : {7U, 8U, 9U, 10U}) {
    second_attempt(0, step, step);
    second_attempt(1, step, step);
  }
  expect_two_attempts(10);
}

TEST_F(Restarted, BlocksOfRanksMayBeReadInAnyOrder) {
  first_attempt({1});
  second_attempt(1, 6, 10);
  first_attempt({0});
  second_attempt(0, 6, 10);
  expect_two_attempts(10);
}

TEST_F(Restarted, ARankWhoseFirstRepeatedStepIsLostAddsNothingOfTheAttemptBefore) {
  first_attempt({0, 1});
  second_attempt(1, 7, 7);
  second_attempt(0, 6, 7);
  const auto rows = run_.rows();
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_EQ(rows[6].begin_ns, kLater + Table::begin_of(0, 6));
  EXPECT_EQ(rows[7].end_ns, kLater + Table::end_of(1, 7));
}

/// Of a run of days a live store has its last steps.
TEST_F(Restarted, GoesBackToAStepThatIsNotKeptAnyMore) {
  run_.table().keep_at_most(8);
  run_.steps({0, 1}, 0, 20);
  ASSERT_GT(run_.rows().front().step, 6U);
  for (const std::uint32_t step : {3U, 4U, 5U}) {
    second_attempt(0, step, step);
    second_attempt(1, step, step);
  }
  const auto rows = run_.rows();
  ASSERT_EQ(rows.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].step, 3 + i);
    EXPECT_EQ(rows[i].begin_ns, kLater + Table::begin_of(0, 3 + i));
    EXPECT_EQ(rows[i].end_ns, kLater + Table::end_of(1, 3 + i));
  }
  ASSERT_EQ(run_.rewinds().size(), 1U) << "of both ranks one";
  EXPECT_EQ(run_.rewinds()[0].step, 3U);
}

/// What a recording has of deleted events is final; what follows it is of the attempt before.
TEST_F(Restarted, GoesBackBelowRestoredSteps) {
  std::vector<StepRow> restored(8);
  for (std::uint32_t step = 0; step < restored.size(); ++step) {
    restored[step].step = step;
    restored[step].begin_ns = Table::begin_of(0, step);
    restored[step].end_ns = Table::end_of(1, step);
  }
  run_.table().restore(restored, 7);
  run_.steps({0, 1}, 8, 10);
  second_attempt(0, 6, 7);
  second_attempt(1, 6, 7);
  ASSERT_EQ(run_.rows().size(), 8U) << "steps 8 to 10 did not follow from it";
  second_attempt(0, 8, 8);
  second_attempt(1, 8, 8);
  ASSERT_EQ(run_.rows().size(), 9U);
  EXPECT_EQ(run_.rows()[8].begin_ns, kLater + Table::begin_of(0, 8));
  EXPECT_EQ(run_.end_of(8), kLater + Table::end_of(1, 8));
}

TEST_F(Restarted, ValuesAreOfTheNewestAttempt) {
  const auto value = [&](std::uint32_t rank, std::int64_t at_ns, EventKind kind, std::int64_t v0) {
    run_.table().add(
        rank,
        {static_cast<std::uint64_t>(at_ns), kind, ev::StreamId::host, 0, 6, ev::kNoId, ev::kNoId, v0, 0},
        at_ns);
  };
  run_.steps({0, 1}, 0, 5);
  run_.begin(0, 6, Table::begin_of(0, 6));
  value(0, Table::begin_of(0, 6) + 1, EventKind::loss, std::bit_cast<std::int64_t>(5.0));
  value(0, Table::begin_of(0, 6) + 2, EventKind::tokens, 100);
  run_.end(0, 6, Table::end_of(0, 6));
  run_.begin(0, 6, kLater + Table::begin_of(0, 6));
  value(0, kLater + Table::begin_of(0, 6) + 1, EventKind::loss, std::bit_cast<std::int64_t>(3.0));
  value(0, kLater + Table::begin_of(0, 6) + 2, EventKind::tokens, 64);
  value(1, Table::begin_of(1, 6) + 1, EventKind::loss, std::bit_cast<std::int64_t>(9.0));  // read late
  EXPECT_EQ(run_.rows().back().loss, 3.0);
  EXPECT_EQ(run_.rows().back().tokens, 64);
}

}  // namespace
}  // namespace shardscope::store
