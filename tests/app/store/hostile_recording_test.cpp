// What somebody made of a recording: it ends the reader with a reason, in time, and is not called complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "app/store/compaction.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

void execute(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << sql << ": " << error;
  sqlite3_close(db);
}

constexpr const char* kEndless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS ";

TEST_F(RecordingTest, AViewWithoutEndInPlaceOfATableIsRefused) {
  const std::string path = write("whole.zscope", make_synthetic_run({.steps = 2}));
  // Of each table that is read first, or alone.
  const std::array<std::pair<const char*, const char*>, 6> views = {{
      {"meta", "key, i AS value FROM n"},
      {"tables", "rank, x'00' AS bytes, 0 AS crc FROM n"},
      {"names", "rank, i AS id, 'a' AS name, 0 AS crc FROM n"},
      {"chunks",
       "id, 0 AS rank, i AS sequence, x'00' AS bytes, 0 AS begin_ns, 0 AS end_ns, 0 AS clock_offset_ns, 0 AS "
       "clock_residual_ns, 1 AS events, 1 AS parts, 0 AS dropped_before, 0 AS lost_before FROM n"},
      {"messages", "id, 0 AS rank, 0 AS at_ns, 0 AS severity, 'a' AS text, 0 AS crc FROM n"},
      {"run", "simulated FROM n"},
  }};
  for (const auto& [table, columns] : views) {
    const std::string hostile = file("view.zscope");
    std::filesystem::copy_file(path, hostile, std::filesystem::copy_options::overwrite_existing);
    execute(hostile,
            std::string("DROP TABLE ") + table + "; CREATE VIEW " + table + " AS " + kEndless + columns);
    EXPECT_THAT(refusal(hostile), testing::HasSubstr(std::string("it has a view named ") + table));
  }
}

TEST_F(RecordingTest, WhatComputesIsRefused) {
  const std::string path = write("whole.zscope", make_synthetic_run({.steps = 2}));
  const std::array<std::pair<const char*, const char*>, 5> hostile = {{
      {"CREATE TRIGGER t AFTER INSERT ON names BEGIN SELECT 1; END", "it has a trigger named t"},
      {"CREATE INDEX slow ON names(hex(zeroblob(400000000)))", "its index slow is more than plain columns"},
      {"CREATE INDEX part ON names(id) WHERE id > 5", "its index part is more than plain columns"},
      {"CREATE TABLE more(a, b AS (hex(zeroblob(400000000))))", "its table more is more than plain columns"},
      {"CREATE TABLE more(a CHECK (length(hex(zeroblob(400000000))) > 5))",
       "its table more is more than plain columns"},
  }};
  for (const auto& [sql, why] : hostile) {
    const std::string copy = file("computes.zscope");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    execute(copy, sql);
    EXPECT_THAT(refusal(copy), testing::HasSubstr(why));
  }
  // A virtual table of a module that this program has or has not.
  const std::string copy = file("virtual.zscope");
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
  execute(copy,
          "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES('table', 'names2', 'names2', 0, "
          "'CREATE VIRTUAL "
          "TABLE names2 USING json_each')");
  EXPECT_THAT(refusal(copy), testing::HasSubstr("its table names2 is more than plain columns"));
}

TEST_F(RecordingTest, WhatAUserAddsInPlainTablesIsNone) {
  const std::string path = write("mine.zscope", make_synthetic_run({.steps = 2}));
  execute(path,
          "CREATE TABLE mine(a INTEGER PRIMARY KEY, b TEXT NOT NULL); CREATE INDEX by_step ON steps(loss, "
          "step DESC); "
          "ANALYZE; VACUUM");
  RecordingInfo info;
  EXPECT_GT(open_recording(path, &info).event_count(), 0U);
  EXPECT_EQ(info.problems.size(), 1U);  // the schema is not what was written
}

/// A page between root and leaves of a table: 200 cells and the right one, all to the same child.
std::string circle(std::uint32_t child, std::size_t page_bytes) {
  std::string page(page_bytes, '\0');
  constexpr std::size_t kCells = 200, kCell = 5, kHeader = 12;
  const auto put = [&](std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      page[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
  };
  const std::size_t content = page_bytes - kCells * kCell;
  put(0, 5, 1);
  put(3, kCells, 2);
  put(5, static_cast<std::uint32_t>(content), 2);
  put(8, child, 4);
  for (std::size_t i = 0; i < kCells; ++i) {
    put(kHeader + 2 * i, static_cast<std::uint32_t>(content + i * kCell), 2);
    put(content + i * kCell, child, 4);
    put(content + i * kCell + 4, static_cast<std::uint32_t>(i % 100), 1);
  }
  return page;
}

TEST_F(RecordingTest, PagesThatAreReadAgainAndAgainComeToAnEnd) {
  const std::string path = write("circles.zscope", make_synthetic_run({.world = 1, .steps = 1, .layers = 1}));
  std::uint32_t root = 0;
  {
    Database db(path, Database::Access::read);
    root =
        static_cast<std::uint32_t>(db.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'"));
  }
  constexpr std::size_t kPage = 2048;
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign((std::istreambuf_iterator<char>(in)), {});
  }
  const std::string leaf = bytes.substr((root - 1) * kPage, kPage);
  constexpr std::uint32_t kLevels = 8;  // 200^8 rows
  auto pages = static_cast<std::uint32_t>(bytes.size() / kPage);
  bytes.replace((root - 1) * kPage, kPage, circle(pages + 1, kPage));
  for (std::uint32_t level = 1; level < kLevels; ++level) bytes += circle(pages + level + 1, kPage);
  bytes += leaf;
  pages += kLevels;
  for (int i = 0; i < 4; ++i)
    bytes[static_cast<std::size_t>(28 + i)] = static_cast<char>(pages >> (8 * (3 - i)));
  std::ofstream(path, std::ios::binary) << bytes;
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_TRUE(mentions(
      info, "messages: the file is damaged there (reading it takes more work than a file of its size"));
}

/// Exchanges the bytes of two rows of table chunks and leaves everything else.
void exchange(const std::string& path, std::int64_t a, std::int64_t b) {
  const std::string x = std::to_string(a), y = std::to_string(b);
  execute(path, "CREATE TEMP TABLE kept AS SELECT bytes FROM chunks WHERE id = " + x +
                    "; UPDATE chunks SET bytes = (SELECT bytes FROM chunks WHERE id = " + y +
                    ") WHERE id = " + x +
                    "; UPDATE chunks SET bytes = (SELECT bytes FROM kept) WHERE id = " + y);
}

TEST_F(RecordingTest, ChunksWhoseBytesWereExchangedAreNamed) {
  const std::string path = write("whole.zscope", make_synthetic_run({.steps = 60}));
  std::vector<std::int64_t> of_rank_0, of_rank_1;
  {
    Database db(path, Database::Access::read);
    Statement rows = db.prepare("SELECT id, rank FROM chunks WHERE rank < 2 ORDER BY id");
    while (rows.step()) (rows.integer(1) == 0 ? of_rank_0 : of_rank_1).push_back(rows.integer(0));
  }
  ASSERT_GE(of_rank_0.size(), 2U);
  const std::array pairs = {std::pair{of_rank_0[0], of_rank_0[1]}, std::pair{of_rank_0[0], of_rank_1[0]}};
  for (const auto& [a, b] : pairs) {
    const std::string copy = file("exchanged.zscope");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    exchange(copy, a, b);
    RecordingInfo info;
    const Store read = open_recording(copy, &info);
    EXPECT_TRUE(mentions(info, "chunk " + std::to_string(a) + " (rank 0,"));
    EXPECT_TRUE(mentions(info, "its bytes are those of another chunk (rank 0, sequence "));
    EXPECT_LT(read.event_count(), info.events + 1);
    // The window finds out when it looks there.
    RecordingInfo seen;
    const Store looked_at = open_recording(copy, &seen, Verify::as_read);
    for (const LaneId lane : looked_at.lanes())
      for (std::uint8_t depth = 0; depth < looked_at.depth_count(lane); ++depth)
        (void)looked_at.spans(lane, depth);
    EXPECT_FALSE(looked_at.problems().empty());
  }
}

TEST_F(RecordingTest, ARankThatDidNotSayThatItEndedIsNamed) {
  SyntheticRun run = make_synthetic_run({.steps = 2});
  ASSERT_GE(run.ranks.size(), 4U);
  for (const std::size_t rank : {1U, 2U}) run.ranks[rank].finished = false;
  RecordingInfo info;
  (void)open_recording(write("unended.zscope", run), &info);
  EXPECT_TRUE(info.complete);  // the recorder did end
  ASSERT_EQ(info.problems.size(), 1U);
  EXPECT_THAT(
      info.problems[0],
      testing::StartsWith("ranks 1, 2 did not say that they ended (killed, or a node's collector was"));
}

TEST_F(RecordingTest, RanksThatNeverCameAreNamed) {
  SyntheticRun run = make_synthetic_run({.world = 4, .steps = 2});
  run.ranks.erase(run.ranks.begin() + 2, run.ranks.end());
  run.tables.erase(run.tables.begin() + 2, run.tables.end());
  std::erase_if(run.chunks, [](const Chunk& chunk) { return chunk.rank >= 2; });
  RecordingInfo info;
  (void)open_recording(write("absent.zscope", run), &info);
  ASSERT_EQ(info.problems.size(), 1U);
  EXPECT_EQ(info.problems[0], "of the run's 4 ranks 2 are not in it: ranks 2, 3");
}

TEST_F(RecordingTest, JoinedChunksCountAsTheirPartsInMeta) {
  SyntheticRun run = make_synthetic_run({.world = 1, .steps = 4});
  const std::size_t chunks = run.chunks.size();
  ASSERT_GE(chunks, 3U);
  const Chunk whole = joined(std::span(run.chunks).first(3));
  run.chunks.erase(run.chunks.begin(), run.chunks.begin() + 3);
  run.chunks.insert(run.chunks.begin(), whole);
  const std::string path = write("joined.zscope", run);
  Database db(path, Database::Access::read);
  EXPECT_EQ(db.integer("SELECT value FROM meta WHERE key = 'chunks'"), static_cast<std::int64_t>(chunks));
  EXPECT_EQ(db.integer("SELECT sum(parts) FROM chunks"), static_cast<std::int64_t>(chunks));
}

}  // namespace
}  // namespace shardscope::store
