// The recording file: what was written is read again, and a writer and its readers leave each other alone.
#include "app/store/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "app/store/checkpointer.h"
#include "app/store/database.h"
#include "tests/app/store/recording_files.h"

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

/// As a viewer has them of a live run: one rank's have the lists.
TEST_F(RecordingTest, AnotherRankKeepsTheListsOfTheOneThatHasThem) {
  const SyntheticRun run = make_synthetic_run({.world = 3});
  {
    RecordingWriter writer(file("copy.zscope"));
    for (const ev::RunTables& tables : run.tables) {
      ev::RunTables own = tables;
      if (own.rank != 0) own.drop_lists();
      writer.tables(own.rank, own);
    }
    Store store;
    fill_store(store, run);
    writer.finish(store);
    ASSERT_EQ(writer.error(), "");
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file("copy.zscope").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE tables SET bytes = zeroblob(length(bytes)) WHERE rank = 0", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  RecordingInfo info;
  const Store read = open_recording(file("copy.zscope"), &info);
  EXPECT_TRUE(mentions(info, "tables"));
  EXPECT_EQ(read.tables().modules.size(), run.tables[0].modules.size());
  EXPECT_EQ(read.tables().params.size(), run.tables[0].params.size());
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
  constexpr int kPages = 64, kTransactions = 400, kMostTransactions = 4000;
  constexpr std::size_t kBytes = 16U << 10;
  const std::string path = file("log.db"), log = path + "-wal";
  Database writer(path, Database::Access::create);
  writer.execute("PRAGMA page_size = 2048");
  writer.execute("PRAGMA journal_mode = WAL");
  writer.execute("PRAGMA synchronous = OFF");  // how fast the disk is is not what is asked here
  writer.execute("CREATE TABLE t(bytes BLOB)");
  writer.leave_log();
  Checkpointer checkpointer(path, kPages);
  const std::vector<std::byte> bytes(kBytes);
  int written = 0;
  const auto is_short = [&] { return fs::file_size(log) < written * kBytes / 4; };
  // More of them where the other thread gets no processor for a while.
  while (written < kTransactions || (written < kMostTransactions && !is_short())) {
    // The next one begins at once, before the other thread has had its turn.
    writer.execute("BEGIN IMMEDIATE");
    writer.prepare("INSERT INTO t VALUES(?1)").bind(1, bytes).run();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    writer.execute("COMMIT");
    checkpointer.committed(writer);
    ++written;
  }
  EXPECT_EQ(writer.integer("SELECT count(*) FROM t"), written);
  EXPECT_GE(fs::file_size(log), kPages * 2048U) << "it is not folded in after every commit";
  EXPECT_TRUE(is_short()) << "it was never written from its beginning again: " << fs::file_size(log)
                          << " bytes";
}

}  // namespace
}  // namespace shardscope::store
