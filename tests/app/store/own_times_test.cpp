// Each rank's own time: alike cut on every rank, bounded whatever the number of steps, and nothing lost in
// between.
#include "app/store/own_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "app/store/block_maker.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

TEST(OwnTimes, AreBoundedAndLoseNothing) {
  OwnTimes times;
  std::map<std::pair<std::uint32_t, std::uint32_t>, OwnTimeRow> rows;  // as a table has them
  constexpr std::uint32_t kFirst = 1000, kSteps = 5000;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      times.add(rank, {.step = kFirst + step, .own_ns = rank + 1, .waited_ns = 10});
    if (step % 7 != 0 && step + 1 != kSteps) continue;
    const OwnTimes::Changes changes = times.changes();
    if (changes.all) rows.clear();
    for (const OwnTimeRow& row : changes.rows) rows[{row.rank, row.first_step}] = row;
  }
  std::map<std::uint32_t, OwnTimeRow> sums;
  std::map<std::uint32_t, std::size_t> stretches;
  for (const auto& [key, row] : rows) {
    EXPECT_EQ(row.last_step - row.first_step, 15U) << "16 steps each: 5000 / 16 is the first below 512";
    EXPECT_EQ((row.first_step - kFirst) % 16, 0U);
    ++stretches[row.rank];
    OwnTimeRow& sum = sums[row.rank];
    sum.steps += row.steps;
    sum.own_ns += row.own_ns;
    sum.waited_ns += row.waited_ns;
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(stretches[rank], 313U);
    EXPECT_EQ(sums[rank].steps, kSteps);
    EXPECT_EQ(sums[rank].own_ns, std::int64_t{kSteps} * (rank + 1));
    EXPECT_EQ(sums[rank].waited_ns, std::int64_t{kSteps} * 10);
  }
  EXPECT_TRUE(times.changes().rows.empty());
}

TEST(OwnTimes, AStepNumberThatCannotBeIsLeftOut) {
  OwnTimes times;
  times.add(0, {.step = 10, .own_ns = 1});
  times.add(0, {.step = 4'000'000'000U, .own_ns = 1});
  times.add(0, {.step = 9, .own_ns = 1});
  const OwnTimes::Changes changes = times.changes();
  ASSERT_EQ(changes.rows.size(), 1U);
  EXPECT_EQ(changes.rows[0].last_step, 10U);
  EXPECT_EQ(changes.rows[0].steps, 1U);
}

/// A step of 10 ms from `at`: computed for 4 ms, of which `waited` ms were a wait; a collective of 3 ms
/// begins when 2 ms are computed.
void add_step(ChunkBuilder& chunk, std::int64_t at, std::uint32_t step, std::int64_t waited) {
  const auto ms = [&](std::int64_t n) { return at + n * kMilli; };
  chunk.host(ms(0), ev::EventKind::step_begin, step).compute(ms(0), ev::EventKind::module_begin, 0);
  if (waited > 0) {
    chunk.compute(ms(1), ev::EventKind::fetch_wait_begin, 0);
    chunk.compute(ms(1 + waited), ev::EventKind::fetch_wait_end, 0);
  }
  chunk.add(ms(2), ev::EventKind::collective_begin, ev::StreamId::gather, step);
  chunk.compute(ms(4), ev::EventKind::module_end, 0);
  chunk.add(ms(5), ev::EventKind::collective_end, ev::StreamId::gather, step);
  chunk.host(ms(10), ev::EventKind::step_end, step);
}

std::vector<OwnTimeRow> measured(const std::vector<Chunk>& chunks) {
  BlockMaker maker;
  OwnTimes times;
  maker.measure(times);
  ev::RunTables tables;
  tables.world = 1;
  maker.tables(tables);
  for (const Chunk& chunk : chunks) (void)maker.make(chunk);
  maker.measure_rest();
  return times.changes().rows;
}

TEST(OwnTimes, AreStepsWithoutExposedCommunication) {
  ChunkBuilder chunk;
  add_step(chunk, 0, 0, 0);
  add_step(chunk, 10 * kMilli, 1, 2);
  const std::vector<OwnTimeRow> rows = measured({chunk.chunk});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].waited_ns, 1 * kMilli) << "from 4 to 5 ms nothing is computed";
  EXPECT_EQ(rows[0].own_ns, 9 * kMilli);
  EXPECT_EQ(rows[1].waited_ns, 2 * kMilli) << "and from 2 to 3 ms";
  EXPECT_EQ(rows[1].own_ns, 8 * kMilli);
}

TEST(OwnTimes, OfAStepThatLiesInTwoBlocksAllIsTaken) {
  ChunkBuilder whole;
  add_step(whole, 0, 0, 2);
  for (std::size_t cut = 1; cut < whole.chunk.events.size(); ++cut) {
    ChunkBuilder first(0, 0), second(0, 1);
    const auto at = whole.chunk.events.begin() + static_cast<std::ptrdiff_t>(cut);
    first.chunk.events.assign(whole.chunk.events.begin(), at);
    second.chunk.events.assign(at, whole.chunk.events.end());
    const std::vector<OwnTimeRow> rows = measured({first.chunk, second.chunk});
    ASSERT_EQ(rows.size(), 1U) << cut;
    EXPECT_EQ(rows[0].own_ns, 8 * kMilli) << cut;
    EXPECT_EQ(rows[0].waited_ns, 2 * kMilli) << cut;
  }
}

TEST(OwnTimes, AStepOfWhichEventsAreMissingIsNotMeasured) {
  std::vector<Chunk> chunks;
  for (std::uint32_t step = 0; step < 4; ++step) {
    ChunkBuilder chunk(0, step);
    add_step(chunk, step * 10 * kMilli, step, 0);
    chunks.push_back(chunk.chunk);
  }
  EXPECT_EQ(measured(chunks).size(), 4U);
  chunks[2].dropped_before = 5;
  const std::vector<OwnTimeRow> rows = measured(chunks);
  // Step 1 is held until the next block, which has the gap: spans of it may be among what is missing.
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].first_step, 0U);
  EXPECT_EQ(rows[1].first_step, 3U);
}

TEST(OwnTimes, WithoutModulesNothingIsKnown) {
  ChunkBuilder chunk;
  for (std::uint32_t step = 0; step < 3; ++step) {
    chunk.host(step * 10 * kMilli, ev::EventKind::step_begin, step);
    chunk.host((step + 1) * 10 * kMilli, ev::EventKind::step_end, step);
  }
  EXPECT_TRUE(measured({chunk.chunk}).empty());
}

TEST_F(PartOfARun, OwnTimesAreOfTheWholeRunAndChecked) {
  record_with({.max_bytes = 1'000'000});
  EXPECT_TRUE(open("whole.zscope").own_times().empty()) << "it keeps its events";
  std::map<std::uint32_t, std::uint32_t> steps;
  std::uint64_t events = 0;
  {
    const Store part = open("part.zscope");
    events = part.event_count();
    for (const OwnTimeRow& row : part.own_times()) steps[row.rank] += row.steps;
  }
  EXPECT_EQ(steps.size(), 2U);
  for (const auto& [rank, count] : steps) EXPECT_EQ(count, kTurns * EndlessRun::kSteps) << rank;
  change(file("part.zscope"), "UPDATE own_times SET own_ns = own_ns + 1 WHERE first_step = 0");
  RecordingInfo info;
  (void)open("part.zscope", &info);
  EXPECT_TRUE(mentions(info, "table own_times: checksum does not match"));
  // One that no recorder writes is not taken; the rest of the file is.
  change(file("part.zscope"), "UPDATE own_times SET steps = 0 WHERE first_step = 0");
  const Store damaged = open("part.zscope", &info);
  EXPECT_TRUE(damaged.own_times().empty());
  EXPECT_TRUE(mentions(info, "a rank's own time is damaged"));
  EXPECT_EQ(damaged.event_count(), events);
}

TEST_F(PartOfARun, ARecordingOfBeforeTheyWereMeasuredIsRead) {
  record_with({.max_bytes = 1'000'000});
  change(file("part.zscope"), "DELETE FROM own_times");
  change(file("part.zscope"), "UPDATE meta SET value = value; DROP TABLE own_times");
  RecordingInfo info;
  EXPECT_TRUE(open("part.zscope", &info).own_times().empty());
  for (const std::string& problem : info.problems)
    EXPECT_EQ(problem.find("own_times: "), std::string::npos) << problem;
}

}  // namespace
}  // namespace shardscope::store
