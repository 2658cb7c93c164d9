// The recording file: what was written is read again, after a crash and a full disk as well.
#include "app/store/recording.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "app/store/checkpointer.h"
#include "app/store/compaction.h"
#include "app/store/database.h"
#include "app/store/recording_schema.h"
#include "tests/store/recording_files.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;

TEST_F(RecordingTest, WholeRunComesBack) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = write("whole.zscope", run);
  EXPECT_FALSE(fs::exists(path + "-wal"));  // one file to copy
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_EQ(info.chunks, run.chunks.size());
  EXPECT_EQ(info.file_bytes, fs::file_size(path));
  Store direct;
  fill_store(direct, run);
  expect_same_run(read, direct);
  EXPECT_EQ(read.tables().params.size(), run.tables[0].params.size());
  EXPECT_EQ(read.tables().params[5].name, run.tables[0].params[5].name);
  EXPECT_EQ(read.tables().slices.size(), run.tables[0].slices.size());
  EXPECT_EQ(read.tables().config_json, run.tables[0].config_json);
  ASSERT_EQ(read.messages().size(), 1U);
  EXPECT_EQ(read.messages()[0].text, run.messages[0].text);
  EXPECT_TRUE(read.ranks()[1].finished);
  EXPECT_EQ(read.rank_tables(3)->pid, 1003);
}

TEST_F(RecordingTest, ChunksThatAreEncodedAlreadyAreStoredAsTheyAre) {
  const SyntheticRun run = make_synthetic_run();
  constexpr std::size_t kDamaged = 3;
  const auto write_encoded = [&](const std::string& name, bool damage) {
    RecordingWriter writer(file(name));
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      std::vector<std::byte> encoded = run.chunks[i].encode();
      if (damage && i == kDamaged) encoded[encoded.size() / 2] ^= std::byte{1};
      writer.append(run.chunks[i], encoded);
    }
    Store store;
    fill_store(store, run);
    writer.finish(store);
    EXPECT_EQ(writer.error(), "");
    return file(name);
  };
  Store direct;
  fill_store(direct, run);
  RecordingInfo info;
  expect_same_run(open_recording(write_encoded("encoded.zscope", false), &info), direct);
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.chunks, run.chunks.size());
  EXPECT_THAT(info.problems, testing::IsEmpty());
  // Encoded again by the writer, the chunk with a flipped bit would be whole.
  const Store damaged = open_recording(write_encoded("damaged_encoded.zscope", true), &info);
  EXPECT_EQ(damaged.event_count(), direct.event_count() - run.chunks[kDamaged].events.size());
  EXPECT_FALSE(info.problems.empty());
}

TEST_F(RecordingTest, TablesAnswerSql) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = write("sql.zscope", run);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto number = [&](const char* sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const double value = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return value;
  };
  EXPECT_EQ(number("SELECT count(*) FROM steps"), 4);
  EXPECT_EQ(number("SELECT world FROM run"), 4);
  EXPECT_EQ(number("SELECT sum(elems) FROM params"), static_cast<double>(run.tables[0].elems));
  EXPECT_EQ(
      number("SELECT sum(s.elems) FROM slices s WHERE rank = 0"),
      number("SELECT sum((elems + 3) / 4) FROM params"));  // 4 ranks: rank 0's shards hold no padding here
  EXPECT_EQ(number("SELECT sum(bytes) FROM memory_peaks WHERE category != 'total' AND rank = 1"),
            number("SELECT bytes FROM memory_peaks WHERE category = 'total' AND rank = 1"));
  EXPECT_GT(number("SELECT total_ns FROM span_summary WHERE kind = 'collective_begin' AND stream = 'gather'"),
            0);
  sqlite3_close(db);
}

TEST_F(RecordingTest, KilledWriterLeavesAReadableFile) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = file("killed.zscope");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      writer.append(run.chunks[i]);
      if (i == 9) writer.commit();
    }
    ::kill(::getpid(), SIGKILL);  // chunks 10 and later were never committed
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_FALSE(info.complete);
  EXPECT_GE(info.chunks, 10U);
  EXPECT_TRUE(mentions(info, "was not finished"));
  EXPECT_EQ(read.tables().world, 4U);
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < info.chunks; ++i) events += run.chunks[i].events.size();
  EXPECT_EQ(read.event_count(), events);
  // The file alone, as someone would copy it, opens too.
  const std::string copy = file("copied.zscope");
  fs::copy_file(path, copy);
  RecordingInfo copied;
  EXPECT_NO_THROW((void)open_recording(copy, &copied));
}

TEST_F(RecordingTest, FullDiskIsAnErrorTextAndKeepsWhatWasWritten) {
  const SyntheticRun run = make_synthetic_run({.steps = 12});
  const std::string path = file("full.zscope");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on the size of files fails writes just as a full disk does.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    std::size_t committed = 0;
    for (int round = 0; round < 20 && writer.error().empty(); ++round) {
      for (Chunk chunk : run.chunks) {
        chunk.sequence += static_cast<std::uint64_t>(round) * 10'000;
        writer.append(chunk);
        writer.commit();
        if (writer.error().empty()) ++committed;
      }
    }
    Store store;
    writer.finish(store);  // must do nothing more
    const bool said = writer.error().find(path) != std::string::npos;
    ::_exit(said && committed > 0 ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_FALSE(info.complete);
  EXPECT_GT(info.chunks, 0U);
  EXPECT_GT(read.event_count(), 0U);
  EXPECT_TRUE(mentions(info, "recording stopped at ")) << testing::PrintToString(info.problems);
}

/// In a small file system that only this process sees.
int record_on_a_small_disk(const std::string& folder, const SyntheticRun& run) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("small", folder.c_str(), "tmpfs", 0, "size=4m") != 0) {
    return 77;
  }
  const std::string path = folder + "/small.zscope";
  std::uint64_t events = 0;
  {
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      // Somebody else takes all the room there is; what the recording has kept for itself is not there.
      if (i == 6) {
        std::ofstream other(folder + "/other", std::ios::binary);
        for (const std::string block(512, 'x'); other.write(block.data(), 512).flush();) continue;
      }
      writer.append(run.chunks[i]);
      writer.commit();
      events += run.chunks[i].events.size();
      if (writer.error().empty() != (i < 6)) return 1;
    }
    if (writer.error().find("full") == std::string::npos) return 2;
    Store store;
    writer.finish(store);
  }
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  if (info.complete || info.events == 0 || info.events >= events) return 3;
  const std::string lacking = "): " + std::to_string(events - info.events) + " events that came until";
  bool says_why = false, says_more = false;
  for (const std::string& problem : info.problems) {
    const bool why = problem.find("recording stopped at ") != std::string::npos;
    says_why = says_why || (why && problem.find(lacking) != std::string::npos);
    // A rank's count is ahead of the chunks; nothing else is wrong, the log least of all.
    says_more =
        says_more || (!why && problem.find(" that were taken in are not in the file") == std::string::npos);
    std::fprintf(stderr, "%s\n", problem.c_str());
  }
  return says_why && !says_more ? 7 : 4;
}

TEST_F(RecordingTest, AfterAFullDiskTheFileSaysWhyItEndsAndWhatItLacks) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 12, .chunk_events = 500});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(record_on_a_small_disk(folder_.string(), run));
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to mount a small disk";
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(RecordingTest, OneInWhichNothingWasCommittedSaysSoAndWhatToDo) {
  RecordingInfo info;
  const auto says = [&](const char* what) {
    ASSERT_EQ(info.problems.size(), 1U) << testing::PrintToString(info.problems);
    EXPECT_THAT(info.problems[0], testing::HasSubstr("nothing is in it: "));
    EXPECT_THAT(info.problems[0], testing::HasSubstr(what));
  };
  {
    RecordingWriter writer(file("begun.zscope"));
    (void)open_recording(file("begun.zscope"), &info);
    says("look again later");
    fs::copy_file(file("begun.zscope"), file("copy.zscope"));
    (void)open_recording(file("copy.zscope"), &info);
    says("copy FILE-wal together with FILE");
    Store store;
    writer.finish(store);
  }
  (void)open_recording(file("begun.zscope"), &info);
  says("no rank came");
}

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
  for (const ev::RunTables& tables : run.tables) whole.note_cut_off(tables.rank, 0);
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

TEST_F(RecordingTest, WriterRefusesWhatItMustNotDestroy) {
  std::ofstream(file("precious.txt")) << "do not lose me";
  EXPECT_THROW(RecordingWriter{file("precious.txt")}, std::runtime_error);
  EXPECT_TRUE(fs::exists(file("precious.txt")));
  EXPECT_THROW(RecordingWriter{folder_.string()}, std::runtime_error);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file("addresses.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE addresses(name)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_THROW(RecordingWriter{file("addresses.db")}, std::runtime_error);
  EXPECT_TRUE(fs::exists(file("addresses.db")));
  const std::string old = write("old.zscope", make_synthetic_run({.steps = 1}));
  EXPECT_EQ(RecordingWriter(old).error(), "");  // replaced
  try {
    RecordingWriter writer(file("no/such/folder/x.zscope"));
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("check that the folder exists"), std::string::npos)
        << error.what();
  }
}

TEST_F(RecordingTest, AFileThatIsTakenAwayWhileItIsWrittenIsNotWrittenInSilence) {
  const SyntheticRun run = make_synthetic_run({.steps = 1});
  for (const bool replaced : {false, true}) {
    const std::string path = file("taken.zscope");
    RecordingWriter writer(path);
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    writer.commit();
    EXPECT_EQ(writer.error(), "");
    fs::remove(path);
    if (replaced) (void)write("taken.zscope", run);
    for (const Chunk& chunk : run.chunks) writer.append(chunk);
    writer.commit();
    EXPECT_THAT(writer.error(), testing::HasSubstr("removed or replaced while it was written"));
    EXPECT_THAT(writer.error(), testing::Not(testing::HasSubstr("is kept")));
  }
  RecordingInfo info;
  (void)open_recording(file("taken.zscope"), &info);
  EXPECT_TRUE(info.complete);  // the other one is whole
  EXPECT_THAT(info.problems, testing::IsEmpty());
}

TEST_F(RecordingTest, ReadOnlyFolderIsReadable) {
  const std::string path = write("ro.zscope", make_synthetic_run({.steps = 1}));
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  RecordingInfo info;
  EXPECT_NO_THROW((void)open_recording(path, &info));
  EXPECT_TRUE(info.complete);
}

TEST_F(RecordingTest, CanBeReadWhileItIsWritten) {
  const SyntheticRun run = make_synthetic_run();
  RecordingWriter writer(file("live.zscope"));
  writer.tables(0, run.tables[0]);
  for (std::size_t i = 0; i < 10; ++i) writer.append(run.chunks[i]);
  writer.commit();
  RecordingInfo info;
  const Store read = open_recording(file("live.zscope"), &info);
  EXPECT_EQ(info.chunks, 10U);
  for (std::size_t i = 10; i < run.chunks.size(); ++i) writer.append(run.chunks[i]);
  Store store;
  fill_store(store, run);
  writer.finish(store);
  EXPECT_EQ(writer.error(), "");
  const Store whole = open_recording(file("live.zscope"), &info);
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(whole.event_count(), store.event_count());
}

TEST_F(RecordingTest, EndsWholeWhileAReaderHoldsTheFile) {
  const SyntheticRun run = make_synthetic_run();
  RecordingWriter writer(file("held.zscope"));
  writer.tables(0, run.tables[0]);
  for (const Chunk& chunk : run.chunks) writer.append(chunk);
  writer.commit();
  Database reader(file("held.zscope"), Database::Access::read);
  reader.execute("BEGIN");
  EXPECT_GT(reader.integer("SELECT count(*) FROM chunks"), 0);  // the read transaction is open from here on
  Store store;
  fill_store(store, run);
  writer.finish(store);
  EXPECT_EQ(writer.error(), "");
  reader.close();
  RecordingInfo info;
  EXPECT_EQ(open_recording(file("held.zscope"), &info).event_count(), store.event_count());
  EXPECT_TRUE(info.complete);
}

TEST_F(RecordingTest, TheLogIsShortenedWhileTransactionsFollowOneAnother) {
  constexpr int kPages = 64, kTransactions = 400;
  constexpr std::size_t kBytes = 16U << 10, kTotal = kTransactions * kBytes;
  const std::string path = file("log.db");
  Database writer(path, Database::Access::create);
  writer.execute("PRAGMA page_size = 2048");
  writer.execute("PRAGMA journal_mode = WAL");
  writer.execute("PRAGMA synchronous = OFF");  // how fast the disk is is not what is asked here
  writer.execute("CREATE TABLE t(bytes BLOB)");
  writer.leave_log();
  Checkpointer checkpointer(path, kPages);
  const std::vector<std::byte> bytes(kBytes);
  for (int i = 0; i < kTransactions; ++i) {
    // The next one begins at once, before the other thread has had its turn.
    writer.execute("BEGIN IMMEDIATE");
    writer.prepare("INSERT INTO t VALUES(?1)").bind(1, bytes).run();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    writer.execute("COMMIT");
    checkpointer.committed(writer);
  }
  EXPECT_EQ(writer.integer("SELECT count(*) FROM t"), kTransactions);
  EXPECT_GE(fs::file_size(path + "-wal"), kPages * 2048U) << "it is not folded in after every commit";
  EXPECT_LT(fs::file_size(path + "-wal"), kTotal / 4) << "it was never written from its beginning again";
}

}  // namespace
}  // namespace shardscope::store
