// Each rank's own time: alike cut on every rank, bounded whatever the number of steps, and nothing lost in
// between.
#include "app/store/own_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
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

/// Steps [begin, end) of 1 ms.
void add_steps(OwnTimes& times, std::uint32_t begin, std::uint32_t end, std::uint32_t rank = 0) {
  for (std::uint32_t step = begin; step < end; ++step) times.add(rank, {.step = step, .own_ns = kMilli});
}

std::uint64_t steps_of(const std::vector<OwnTimeRow>& rows) {
  std::uint64_t out = 0;
  for (const OwnTimeRow& row : rows) out += row.steps;
  return out;
}

TEST(OwnTimes, OneStepNumberThatCannotBeSpoilsNothing) {
  for (const std::uint32_t damaged : {(1U << 27) - 1, 4'000'000'000U, 0xffffffffU}) {
    OwnTimes times;
    add_steps(times, 10, 210);
    times.add(0, {.step = damaged, .own_ns = 1});
    add_steps(times, 210, 400);
    const std::vector<OwnTimeRow> rows = times.changes().rows;
    EXPECT_EQ(rows.size(), 390U) << damaged << ": a stretch has one step as before";
    EXPECT_EQ(rows.back().last_step, 399U) << damaged;
    EXPECT_EQ(steps_of(rows), 390U) << damaged;
    OwnTimes first;
    first.add(0, {.step = damaged, .own_ns = 1});
    add_steps(first, 10, 400);
    const OwnTimes::Changes begun = first.changes();
    EXPECT_TRUE(begun.all);
    EXPECT_EQ(steps_of(begun.rows), 389U)
        << damaged << ": the second of the run shows that the first was odd";
    EXPECT_EQ(begun.rows.front().first_step, 11U) << damaged;
  }
}

TEST(OwnTimes, ARunThatGoesFarOnOrBackIsFollowed) {
  OwnTimes on;
  add_steps(on, 0, 100);
  add_steps(on, 1'000'000, 1'000'100);
  std::vector<OwnTimeRow> rows = on.changes().rows;
  EXPECT_EQ(steps_of(rows), 199U);
  EXPECT_GE(rows.back().last_step, 1'000'099U);
  OwnTimes back;
  add_steps(back, 5000, 5100);
  (void)back.changes();
  add_steps(back, 4000, 4200);  // to a checkpoint of before the recording
  const OwnTimes::Changes changes = back.changes();
  EXPECT_TRUE(changes.all);
  EXPECT_EQ(steps_of(changes.rows), 300U);
  EXPECT_LE(changes.rows.front().first_step, 4000U);
  EXPECT_LE(changes.rows.size(), OwnTimes::kMost);
  for (const OwnTimeRow& row : changes.rows) EXPECT_LE(row.steps, row.last_step - row.first_step + 1);
}

TEST(OwnTimes, AStretchThatBeginsBeforeStepZeroSaysSo) {
  OwnTimes times;
  add_steps(times, 3, 1003);
  add_steps(times, 0, 3, 1);
  for (const OwnTimeRow& row : times.changes().rows) {
    EXPECT_LE(row.first_step, 1003U);
    // Two steps each, cut at odd ones: 0 alone, then 1 and 2.
    const bool alone = row.last_step == 0;
    if (row.rank == 1) {
      EXPECT_EQ(row.first_step, alone ? 0U : 1U);
      EXPECT_EQ(row.steps, alone ? 1U : 2U);
    }
  }
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

TEST(OwnTimes, AChunkThatCannotBePlacedIsMissing) {
  std::vector<Chunk> chunks;
  for (std::uint32_t step = 0; step < 4; ++step) {
    ChunkBuilder chunk(0, step);
    add_step(chunk, step * 10 * kMilli, step, 0);
    chunks.push_back(chunk.chunk);
  }
  chunks[1].clock_offset_ns = std::numeric_limits<std::int64_t>::max();
  const std::vector<OwnTimeRow> rows = measured(chunks);
  // As of dropped events: step 0 is held when the next chunk comes, which has the gap.
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].first_step, 3U);
}

/// Of a run whose host alone has times 64 steps wait for records of the GPU, with all that is in them.
TEST(OwnTimes, WhereTooMuchWaitsTheOldestStepsAreGivenUp) {
  const OwnTimeSource source{.of_host = true, .of_gpu = true};
  OwnTimeOfRank own;
  constexpr std::uint32_t kSteps = 40, kSpans = 600;  // 24,000 intervals
  std::optional<Missing> nothing;
  std::size_t measured = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    ChunkBuilder chunk;
    const std::int64_t at = step * 10 * kMilli;
    chunk.host(at, ev::EventKind::step_begin, step);
    for (std::uint32_t span = 0; span < kSpans; ++span) {
      chunk.compute(at + span * 10'000, ev::EventKind::kernel_begin, 0);
      chunk.compute(at + span * 10'000 + 1000, ev::EventKind::kernel_end, 0);
    }
    chunk.host(at + 10 * kMilli, ev::EventKind::step_end, step);
    RankState one{RankState::For::blocks};
    one.expect(10 * kMilli);
    one.add(chunk.chunk.events, 0, {}, nothing);
    measured += own.take(one, source, false).size();
  }
  // The records of all steps come late.
  ChunkBuilder late;
  const std::int64_t end = kSteps * 10 * kMilli;
  late.add(0, ev::EventKind::gpu_records_begin, ev::StreamId::gpu_records);
  RankState one{RankState::For::blocks};
  one.expect(end);
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    late.add(step * 10 * kMilli, ev::EventKind::gpu_begin, ev::StreamId::gpu_compute);
    late.add(step * 10 * kMilli + kMilli, ev::EventKind::gpu_end, ev::StreamId::gpu_compute);
  }
  late.add(end, ev::EventKind::gpu_records_end, ev::StreamId::gpu_records);
  one.add(late.chunk.events, 0, {}, nothing);
  std::vector<OwnTime> known = own.take(one, source, false);
  EXPECT_EQ(measured, 0U);
  EXPECT_LT(known.size(), 28U);
  EXPECT_GE(known.size(), 20U) << "the newest that fit into 16,384 intervals";
  if (!known.empty()) {
    EXPECT_EQ(known.back().step, kSteps - 1);
  }
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
  std::uint64_t events = 0;
  {
    const Store part = open("part.zscope");
    events = part.event_count();
    ASSERT_FALSE(part.own_times().empty());
  }
  change(file("part.zscope"), "UPDATE meta SET value = value; DROP TABLE own_times");
  RecordingInfo info;
  const Store before = open("part.zscope", &info);
  EXPECT_TRUE(before.own_times().empty());
  EXPECT_EQ(before.event_count(), events);
  EXPECT_FALSE(mentions(info, "damaged")) << "a table that is not there is no damage";
  for (const std::string& problem : info.problems)
    EXPECT_EQ(problem.find("own_times: "), std::string::npos) << problem;
}

}  // namespace
}  // namespace shardscope::store
