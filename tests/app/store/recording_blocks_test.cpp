// The blocks of a recording: small chunks are joined to them, and nothing is lost, doubled or moved by it.
#include "app/store/recording_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "app/store/compaction.h"
#include "app/store/database.h"
#include "app/store/recorded_run.h"
#include "app/store/recording.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

TEST_F(RecordingTest, SmallChunksAreJoinedAndNothingMoves) {
  // As a live run arrives: a few events at a time, the clock's offset corrected now and then, once with
  // events missing.
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 200, .chunk_events = 256});
  std::uint64_t gap_at = 0;
  for (Chunk& chunk : run.chunks) {
    const std::int64_t correction = static_cast<std::int64_t>(chunk.sequence % 7) * 1000;
    chunk.clock_offset_ns += correction;
    for (ev::Event& event : chunk.events) event.ticks -= static_cast<std::uint64_t>(correction);
    if (chunk.rank == 1 && chunk.sequence == 100) chunk.dropped_before = gap_at = 17;
  }
  ASSERT_EQ(gap_at, 17U);
  const std::string path = write("joined.zscope", run);
  Store direct;
  fill_store(direct, run);
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.chunks, run.chunks.size());
  expect_same_run(read, direct);
  ASSERT_EQ(read.gaps().size(), 1U);
  EXPECT_EQ(read.gaps()[0].events, 17U);
  EXPECT_EQ(read.gaps()[0].begin_ns, direct.gaps()[0].begin_ns);

  Database database(path, Database::Access::read);
  const std::int64_t rows = database.integer("SELECT count(*) FROM chunks");
  const auto large = static_cast<std::int64_t>(read.event_count() / Compaction::kJoinedEvents);
  EXPECT_GE(rows, large);
  EXPECT_LE(rows, large + 4);  // the rest of two ranks, and the group that the gap cut short
  EXPECT_EQ(database.integer("SELECT sum(parts) FROM chunks"), static_cast<std::int64_t>(run.chunks.size()));
  const double each = static_cast<double>(database.integer("SELECT sum(length(bytes)) FROM chunks")) /
                      static_cast<double>(read.event_count());
  EXPECT_LT(each, 3.5);
}

// A frame reads a part of what it needs, and the next frames the rest.
TEST_F(RecordingTest, StatesOfATimeAreReadBlockByBlock) {
  SyntheticRun run = make_synthetic_run({.world = 1, .steps = 200, .chunk_events = Compaction::kLargeEvents});
  ASSERT_GT(run.chunks.size(), 3U);
  // An event of the first block is later than the third begins: the state there needs all three.
  const std::int64_t in_third_ns = run.chunks[2].times().begin_ns + 1000;
  run.chunks[0].events.back().ticks =
      static_cast<std::uint64_t>(in_third_ns + 1000 - run.chunks[0].clock_offset_ns);
  const std::string path = write("by_block.zscope", run);
  const Store store = open_recording(path, nullptr);
  const std::int64_t at = in_third_ns - store.origin_ns();
  int turns = 1;
  while (!store.read_states(0, at, std::chrono::nanoseconds(0))) ++turns;
  EXPECT_EQ(turns, 3);
  EXPECT_TRUE(store.read_states(0, at, std::chrono::nanoseconds(0)));
  std::vector<ParamState> states(run.tables[0].params.size()), wanted = states;
  store.param_states(0, at, states);
  open_recording(path, nullptr).param_states(0, at, wanted);
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].status, wanted[i].status) << i;
    EXPECT_EQ(states[i].since_ns, wanted[i].since_ns) << i;
  }
  const Store other = open_recording(path, nullptr);
  EXPECT_TRUE(other.read_states(0, at, std::chrono::hours(1)));
  EXPECT_TRUE(other.read_states(17, at, std::chrono::nanoseconds(0)));  // no such rank: nothing to read
}

// A sealed block keeps what its steps were, because a recording opens without reading its events.
TEST_F(RecordingTest, SkippedStepsStaySkippedInBlocks) {
  const auto skipped = [](std::uint32_t step) { return step % 3 == 1; };
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 200, .chunk_events = 256});
  for (Chunk& chunk : run.chunks) {
    for (ev::Event& event : chunk.events) {
      if (event.kind == ev::EventKind::step_end) event.code = skipped(event.a) ? 1 : 0;
    }
  }
  const Store read = open_recording(write("skipped.zscope", run), nullptr);
  ASSERT_EQ(read.steps().size(), 200U);
  for (const StepRow& row : read.steps()) EXPECT_EQ(row.skipped, skipped(row.step)) << row.step;
}

TEST_F(RecordingTest, JoiningStaysWithinTheCommittedState) {
  // Killed at any commit, what was joined is there once, not twice and not never.
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 120, .chunk_events = 512});
  const std::string path = file("killed_joining.zscope");
  for (const std::size_t last : {run.chunks.size() / 3, run.chunks.size() - 1}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RecordingWriter writer(path);
      writer.tables(0, run.tables[0]);
      for (std::size_t i = 0; i <= last; ++i) writer.append(run.chunks[i]);
      writer.commit();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    RecordingInfo info;
    const Store read = open_recording(path, &info);
    EXPECT_EQ(info.chunks, last + 1);
    EXPECT_TRUE(read.gaps().empty());
    Store direct;
    direct.set_tables(0, run.tables[0]);
    for (std::size_t i = 0; i <= last; ++i) direct.ingest(run.chunks[i]);
    expect_same_run(read, direct);
  }
}

TEST_F(RecordingTest, ALargeChunkAfterSmallOnesKeepsItsPlace) {
  // A rank that starts slowly and then bursts: the small ones are joined when the large one comes.
  SyntheticRun run = make_synthetic_run({.world = 1, .steps = 60, .chunk_events = 1024});
  SyntheticRun burst = make_synthetic_run({.world = 1, .steps = 60, .chunk_events = 40'000});
  constexpr std::size_t kSmall = 3;
  static_assert(kSmall * 1024 < Compaction::kLargeEvents);
  const std::int64_t until = run.chunks[kSmall - 1].times().end_ns;
  run.chunks.resize(kSmall);
  run.chunks.push_back(burst.chunks[0]);
  Chunk& large = run.chunks.back();
  large.sequence = kSmall;
  std::erase_if(large.events,
                [&](const ev::Event& e) { return static_cast<std::int64_t>(e.ticks) <= until; });
  while (large.events.size() < Compaction::kLargeEvents) large.events.push_back(large.events.back());
  const std::string path = file("burst.zscope");
  RecordingWriter writer(path);
  writer.tables(0, run.tables[0]);
  for (const Chunk& chunk : run.chunks) writer.append(chunk);
  writer.commit();
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_EQ(info.chunks, run.chunks.size());
  EXPECT_TRUE(read.gaps().empty());
  EXPECT_FALSE(mentions(info, "out of order"));
  Database database(path, Database::Access::read);
  EXPECT_EQ(database.integer("SELECT count(*) FROM chunks"), 2);
}

TEST_F(RecordingTest, BlocksAnswerLikeAStoreThatKeepsEverything) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 160, .chunk_events = 400});
  const std::string path = write("blocks.zscope", run);
  const Store whole = whole_of(run);
  for (const Verify verify : {Verify::everything, Verify::as_read}) {
    RecordingInfo info;
    const Store read = open_recording(path, &info, verify);
    EXPECT_THAT(info.problems, testing::IsEmpty());
    EXPECT_EQ(info.chunks, run.chunks.size());
    EXPECT_EQ(info.events, whole.event_count());
    EXPECT_EQ(read.cache_bytes(), 0U);  // nothing was read to open it
    expect_same_tables(whole, read);
    expect_same_density(whole, read, 1, 12);
    expect_same_lanes(whole, read, 2, 3);
    expect_same_states(whole, read, 4, 40);
  }
  Database database(path, Database::Access::read);
  const std::int64_t rows = database.integer("SELECT count(*) FROM chunks");
  EXPECT_GT(rows, 4);
  EXPECT_EQ(database.integer("SELECT count(*) FROM blocks"), rows);
  EXPECT_EQ(database.integer("SELECT count(*) FROM tails"), 2);
  const double each = static_cast<double>(database.integer("SELECT sum(length(bytes)) FROM blocks") +
                                          database.integer("SELECT sum(length(bytes)) FROM levels")) /
                      static_cast<double>(whole.event_count());
  EXPECT_LT(each, 0.8);
}

/// The recorder counts unmatched span ends while it seals blocks; what is behind the last block is counted
/// when it is read.
TEST_F(RecordingTest, UnmatchedEndsAreCounted) {
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 40, .layers = 1});
  std::uint64_t taken = 0;
  for (Chunk& chunk : run.chunks) {
    if (chunk.sequence < 4 || chunk.rank != 1) continue;
    taken += std::erase_if(
        chunk.events, [](const ev::Event& event) { return event.kind == ev::EventKind::optimizer_begin; });
  }
  ASSERT_GT(taken, 10U);
  const Store read = open_recording(write("ends.zscope", run), nullptr);
  const auto ends = read.unmatched_ends();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].rank, 1U);
  EXPECT_EQ(ends[0].kind, ev::EventKind::optimizer_end);
  EXPECT_EQ(ends[0].count, taken);
  EXPECT_EQ(ends[0].explained, 0U);
}

TEST_F(RecordingTest, WhatIsKeptOfABlockIsAFewKilobytes) {
  const auto kept = [&](std::uint32_t steps) {
    const SyntheticRun run = make_synthetic_run({.world = 1, .steps = steps, .chunk_events = 8192});
    const Store store = open_recording(write("kept" + std::to_string(steps) + ".zscope", run), nullptr);
    return std::pair(store.resident_bytes(), store.cuts({0, ev::StreamId::compute}).size());
  };
  const auto [few_bytes, few] = kept(200);
  const auto [many_bytes, many] = kept(1000);
  ASSERT_GT(many, few + 100);
  // A recording of 640 million events has 78,000.
  EXPECT_LT((many_bytes - few_bytes) / (many - few), 12U << 10) << many - few;
}

TEST_F(RecordingTest, AKilledRecordingHasTheBlocksOfWhatWasCommitted) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 120, .chunk_events = 500});
  const std::string path = file("killed_blocks.zscope");
  const std::size_t last = run.chunks.size() * 9 / 10;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i <= last; ++i) writer.append(run.chunks[i]);
    writer.commit();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Store whole;
  whole.seal_after(SIZE_MAX);
  for (const ev::RunTables& tables : run.tables) whole.set_tables(tables.rank, tables);
  for (std::size_t i = 0; i <= last; ++i) whole.ingest(run.chunks[i]);
  for (const ev::RunTables& tables : run.tables) RecordedRun(whole).note_cut_off(tables.rank, 0);
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_FALSE(info.complete);
  {
    Database database(path, Database::Access::read);
    EXPECT_GT(database.integer("SELECT count(*) FROM blocks"), 1);
    EXPECT_GT(database.integer("SELECT count(*) FROM chunks"),
              database.integer("SELECT count(*) FROM blocks"));  // the newest are not joined yet
  }
  expect_same_tables(whole, read);
  expect_same_lanes(whole, read, 5, 3);
  expect_same_states(whole, read, 6, 30);
}

}  // namespace
}  // namespace shardscope::store
