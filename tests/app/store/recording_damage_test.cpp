// A damaged, cut off or wrong file is reported as text, never crashes the reader and never yields made-up
// data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>

#include "app/store/gap_text.h"
#include "app/store/losses.h"
#include "app/store/recording.h"
#include "app/store/span_time.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;

TEST_F(RecordingTest, TruncatedCopiesShowWhatIsWhole) {
  const SyntheticRun run = make_synthetic_run({.steps = 60});  // several joined chunks per rank
  const std::string path = write("whole.zscope", run);
  const std::uintmax_t size = fs::file_size(path);
  std::uint64_t most = 0;
  for (int tenth = 0; tenth < 10; ++tenth) {
    const std::string copy = file("cut.zscope");
    fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, size * static_cast<std::uintmax_t>(tenth) / 10);
    try {
      RecordingInfo info;
      const Store read = open_recording(copy, &info);
      EXPECT_THAT(info.problems, testing::Not(testing::IsEmpty())) << tenth;
      // At the end are only levels of detail, which are made again.
      if (tenth < 9) {
        EXPECT_LT(info.chunks, run.chunks.size()) << tenth;
      }
      most = std::max(most, info.chunks);
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(copy), std::string::npos);
    }
  }
  EXPECT_GT(most, run.chunks.size() / 3);  // something was saved from the longest
}

TEST_F(RecordingTest, FlippedBitsAreNamedNeverBelieved) {
  const SyntheticRun run = make_synthetic_run({.steps = 3});
  const std::string path = write("whole.zscope", run);
  Store truth;
  fill_store(truth, run);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::mt19937_64 random(3);
  int opened = 0;
  for (int i = 0; i < 150; ++i) {
    std::string copy = bytes;
    for (int f = 0; f < 1 + i % 8; ++f)
      copy[random() % copy.size()] ^= static_cast<char>(1U << (random() % 8));
    const std::string damaged = file("flipped.zscope");
    std::ofstream(damaged, std::ios::binary) << copy;
    try {
      RecordingInfo info;
      const Store read = open_recording(damaged, &info);
      ++opened;
      // Either all is there, or a problem is named.
      if (info.problems.empty()) {
        EXPECT_EQ(read.event_count(), truth.event_count());
        EXPECT_EQ(info.chunks, run.chunks.size());
      }
      EXPECT_LE(read.event_count(), truth.event_count());
      for (const StepRow& step : read.steps()) {
        ASSERT_LT(step.step, truth.steps().size());
        if (step.end_ns != kOpen && info.problems.empty()) {
          EXPECT_EQ(step.end_ns, truth.steps()[step.step].end_ns);
        }
      }
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("recording"), std::string::npos);
    }
  }
  EXPECT_GT(opened, 100);
}

/// The contents of a recording's tables by SQL, without checksummed blobs; empty where SQLite reports an
/// error.
std::string sql_tables(const std::string& path) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  std::string out;
  for (const char* query :
       {"SELECT * FROM run", "SELECT * FROM modules", "SELECT * FROM params", "SELECT * FROM module_params",
        "SELECT * FROM slices", "SELECT * FROM steps", "SELECT * FROM memory_peaks",
        "SELECT * FROM span_summary", "SELECT * FROM gaps", "SELECT * FROM ranks", "SELECT * FROM messages",
        "SELECT * FROM names", "SELECT id FROM blocks", "SELECT id FROM levels", "SELECT id FROM tiles",
        "SELECT rank FROM tails", "SELECT rank FROM tables", "PRAGMA user_version",
        "SELECT id, rank, sequence, begin_ns, end_ns, clock_offset_ns, clock_residual_ns, events, "
        "dropped_before, lost_before, parts FROM chunks"}) {
    const int code = sqlite3_exec(
        db, query,
        [](void* text, int columns, char** values, char** names) {
          for (int i = 0; i < columns; ++i) {
            *static_cast<std::string*>(text) +=
                std::string(names[i]) + "=" + (values[i] == nullptr ? "NULL" : values[i]) + "|";
          }
          return 0;
        },
        &out, nullptr);
    if (code != SQLITE_OK) {
      out.clear();
      break;
    }
  }
  sqlite3_close(db);
  return out;
}

TEST_F(RecordingTest, FlippedBitsInSqlTablesAreNamed) {
  const std::string path =
      write("whole.zscope", make_synthetic_run({.world = 2, .steps = 40, .chunk_events = 500}));
  const std::string truth = sql_tables(path);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::mt19937_64 random(5);
  int changed = 0;
  for (int i = 0; i < 400; ++i) {
    std::string copy = bytes;
    // Tables that SQL reads are at the begin and the end of the file.
    const std::size_t at = i % 3 == 0   ? random() % copy.size()
                           : i % 3 == 1 ? random() % (64 << 10)
                                        : copy.size() - 1 - random() % (64 << 10);
    copy[at] ^= static_cast<char>(1U << (random() % 8));
    const std::string damaged = file("flipped.zscope");
    std::ofstream(damaged, std::ios::binary) << copy;
    try {
      RecordingInfo info;
      (void)open_recording(damaged, &info);
      const std::string read = sql_tables(damaged);
      if (read.empty() || read == truth) continue;
      ++changed;
      EXPECT_THAT(info.problems, testing::Not(testing::IsEmpty())) << i;
    } catch (const std::runtime_error&) {  // refused in words
    }
  }
  EXPECT_GT(changed, 10);
}

TEST_F(RecordingTest, ChangedSqlTablesAreNamedEachByItself) {
  SyntheticRun run = make_synthetic_run({.world = 2});
  run.chunks.back().dropped_before = 3;  // a gap
  const std::pair<const char*, const char*> changes[] = {
      {"run", "UPDATE run SET model = model || '.'"},
      {"modules", "UPDATE modules SET hooks = 1 - hooks WHERE id = 1"},
      {"params", "UPDATE params SET elems = elems + 1 WHERE id = 0"},
      {"module_params", "DELETE FROM module_params WHERE position = 0"},
      {"slices", "UPDATE slices SET shard_offset = shard_offset + 1 WHERE rowid = 1"},
      {"steps", "UPDATE steps SET loss = loss / 2 WHERE step = 1"},
      {"steps", "UPDATE steps SET loss = NULL WHERE step = 1"},
      {"memory_peaks", "UPDATE memory_peaks SET bytes = bytes + 1 WHERE category = 'total'"},
      {"span_summary", "UPDATE span_summary SET total_ns = total_ns * 2"},
      {"gaps", "UPDATE gaps SET events = events + 1"},
      {"meta", "UPDATE meta SET value = value + 1 WHERE key = 'origin_ns'"},
      {"chunks", "UPDATE chunks SET events = events + 1 WHERE id = (SELECT max(id) FROM chunks)"},
      {"chunks", "UPDATE chunks SET clock_offset_ns = 7 WHERE rank = 1"},
      {"messages", "DELETE FROM messages"},
      {"sqlite_schema",
       "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'loss REAL', 'lose REAL') "
       "WHERE name = 'steps'"},
      {"header", "PRAGMA user_version = 4; UPDATE meta SET value = value"},
  };
  for (const auto& [table, sql] : changes) {
    SCOPED_TRACE(sql);
    const std::string path = write("changed.zscope", run);
    RecordingInfo info;
    (void)open_recording(path, &info);
    EXPECT_THAT(info.problems, testing::IsEmpty());
    change(path, sql);
    (void)open_recording(path, &info);
    EXPECT_TRUE(mentions(info, std::string("table ") + table + ": checksum does not match"));
    EXPECT_EQ(info.problems.size(), 1U) << testing::PrintToString(info.problems);
    (void)open_recording(path, &info, Verify::as_read);
    EXPECT_THAT(info.problems, testing::IsEmpty());
  }
  const std::string path = write("changed.zscope", run);
  change(path, "DELETE FROM meta WHERE key = 'crc:steps'");
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_TRUE(mentions(info, "table steps: its checksum is missing"));
  change(path, "DELETE FROM meta WHERE key GLOB 'crc:*'");
  (void)open_recording(path, &info);
  EXPECT_THAT(info.problems, testing::ElementsAre("the checksums of its tables are missing"));
}

/// Each has a correct checksum of its own: only its place is wrong.
TEST_F(RecordingTest, ExchangedBlobsAreNamed) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 160, .chunk_events = 1024});
  const auto exchange = [](const std::string& table, const std::string& key, const std::string& column) {
    const std::string one = "(SELECT min(" + key + ") FROM " + table + ")";
    const std::string other = "(SELECT max(" + key + ") FROM " + table + ")";
    return "CREATE TEMP TABLE both AS SELECT " + key + " AS k, " + column + " AS v FROM " + table +
           " WHERE " + key + " IN (" + one + ", " + other + "); UPDATE " + table + " SET " + column +
           " = (SELECT v FROM both WHERE k <> " + table + "." + key + ") WHERE " + key +
           " IN (SELECT k FROM both)";
  };
  const std::tuple<const char*, const char*, const char*> cells[] = {{"levels", "id", "bytes"},
                                                                     {"levels", "id", "statuses"},
                                                                     {"tiles", "id", "bytes"},
                                                                     {"tails", "rank", "statuses"}};
  for (const auto& [table, key, column] : cells) {
    SCOPED_TRACE(std::string(table) + "." + column);
    const std::string path = write("exchanged.zscope", run);
    RecordingInfo info;
    (void)open_recording(path, &info);
    ASSERT_THAT(info.problems, testing::IsEmpty());
    ASSERT_TRUE(info.complete);
    change(path, exchange(table, key, column).c_str());
    (void)open_recording(path, &info);
    EXPECT_TRUE(mentions(info, std::string("table ") + table + ": checksum does not match"))
        << testing::PrintToString(info.problems);
  }
  const std::string path = write("unchecked.zscope", run);
  change(path, "DELETE FROM meta WHERE key = 'crc:blobs_levels'");
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_THAT(info.problems, testing::ElementsAre("table levels: its checksum is missing"));
}

TEST_F(RecordingTest, DamagedChunkIsNamedAndBecomesAGap) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = write("one.zscope", run);
  change(path,
         "UPDATE chunks SET bytes = substr(bytes, 1, 200) || x'00' || substr(bytes, 202) WHERE rank = 1");
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  // Joined at the end, so one row held all of the rank.
  EXPECT_EQ(info.chunks, std::count_if(run.chunks.begin(), run.chunks.end(),
                                       [](const Chunk& chunk) { return chunk.rank != 1; }));
  EXPECT_TRUE(mentions(info, "(rank 1, sequence 0)"));
  EXPECT_TRUE(mentions(info, "checksum"));
  EXPECT_EQ(read.depth_count({1, ev::StreamId::compute}), 0U);
  ASSERT_EQ(read.gaps().size(), 1U);  // nothing follows it, and still it is known to be missing
  EXPECT_EQ(read.gaps()[0].rank, 1U);
  EXPECT_TRUE(read.gaps()[0].damaged);
  EXPECT_GT(read.gaps()[0].events, 100U);
  EXPECT_GT(read.gaps()[0].end_ns, read.end_ns() / 2);
  EXPECT_GT(read.depth_count({2, ev::StreamId::compute}), 0U);
  const Losses losses = losses_of(read);
  EXPECT_EQ(losses.damaged_events, read.gaps()[0].events);
  EXPECT_EQ(losses.absent_events, 0U);  // they are in the file, and damaged
  EXPECT_EQ(text_of(losses),
            "0 dropped, 0 messages lost, " + std::to_string(losses.damaged_events) + " damaged");
  EXPECT_FALSE(mentions(info, "not in the file"));
}

TEST_F(RecordingTest, EventsThatWereTakenInAndAreNotInTheFileAreCounted) {
  const SyntheticRun run = make_synthetic_run({.world = 2});
  Store whole;
  fill_store(whole, run);
  const std::string path = file("short.zscope");
  std::uint64_t left_out = 0;
  {
    RecordingWriter writer(path);  // as after a full disk: the rows of the ranks are ahead of the chunks
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (const Chunk& chunk : run.chunks) {
      if (chunk.rank == 0 && chunk.sequence > 0) {
        left_out += chunk.events.size();
      } else {
        writer.append(chunk);
      }
    }
    for (const RankRow& row : whole.ranks()) writer.rank(row);
  }
  ASSERT_GT(left_out, 0U);
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_EQ(losses_of(read).absent_events, left_out);
  EXPECT_TRUE(mentions(info, "rank 0: " + std::to_string(left_out) + " of the " +
                                 std::to_string(whole.ranks()[0].events) + " events"));
  EXPECT_FALSE(mentions(info, "rank 1: "));
  // What follows does not look like a time in which nothing happened, nor as if open spans had continued.
  const auto of_rank_0 =
      std::find_if(read.gaps().begin(), read.gaps().end(), [](const Gap& gap) { return gap.rank == 0; });
  ASSERT_NE(of_rank_0, read.gaps().end());
  EXPECT_TRUE(of_rank_0->cut_off);
  EXPECT_EQ(of_rank_0->events, left_out);
  EXPECT_EQ(of_rank_0->end_ns, read.end_ns());
  EXPECT_LT(of_rank_0->begin_ns, read.end_ns() * 3 / 4);
  EXPECT_THAT(what_is_missing(*of_rank_0), testing::HasSubstr("not in the recording"));
  for (const LaneId lane : read.lanes()) {
    for (std::uint8_t depth = 0; lane.rank == 0 && depth < read.depth_count(lane); ++depth) {
      for (const Span& span : read.spans(lane, depth)) {
        EXPECT_LE(time_of(read, 0, span).until_ns, of_rank_0->begin_ns);
      }
    }
  }
}

TEST_F(RecordingTest, ChunksThatAFinishedRecordingCountsAndDoesNotHoldAreMissing) {
  const SyntheticRun run = make_synthetic_run({.steps = 1});
  const std::string path = write("short.zscope", run);
  change(path, "UPDATE meta SET value = value + 3 WHERE key = 'chunks'");
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_TRUE(info.complete);
  EXPECT_TRUE(mentions(info, "3 of " + std::to_string(run.chunks.size() + 3) + " chunks are missing"))
      << testing::PrintToString(info.problems);
}

TEST_F(RecordingTest, LossesOnTheWayAreSummedUp) {
  SyntheticRun run = make_synthetic_run({.world = 2});
  const auto last = [&](std::uint32_t rank) -> Chunk& {
    return *std::find_if(run.chunks.rbegin(), run.chunks.rend(),
                         [rank](const Chunk& chunk) { return chunk.rank == rank; });
  };
  last(0).lost_before = 37;
  last(1).dropped_before = 20;
  last(1).shed_before = 5;
  RecordingInfo info;
  const Store read = open_recording(write("lossy.zscope", run), &info);
  const Losses losses = losses_of(read);
  EXPECT_TRUE(losses.any());
  EXPECT_EQ(text_of(losses), "20 dropped (5 of them by a collector), 37 messages lost");
  EXPECT_FALSE(losses_of(whole_of(make_synthetic_run({.world = 1}))).any());
}

TEST_F(RecordingTest, DamagedChunkInTheMiddleBecomesAGap) {
  const SyntheticRun run = make_synthetic_run();
  const std::string path = file("middle.zscope");
  constexpr std::size_t kDamaged = 5;
  {
    RecordingWriter writer(path);  // never finished: its chunks stay small
    for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
    for (std::size_t i = 0; i < run.chunks.size(); ++i) {
      std::vector<std::byte> encoded = run.chunks[i].encode();
      if (i == kDamaged) encoded[encoded.size() / 2] ^= std::byte{1};
      writer.append(run.chunks[i], encoded);
    }
  }
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_EQ(info.chunks, run.chunks.size() - 1);
  EXPECT_TRUE(mentions(info, "chunk 6 (rank " + std::to_string(run.chunks[kDamaged].rank)));
  EXPECT_TRUE(mentions(info, "checksum"));
  ASSERT_FALSE(read.gaps().empty());
  EXPECT_EQ(read.gaps()[0].rank, run.chunks[kDamaged].rank);
  EXPECT_TRUE(read.gaps()[0].damaged);
  EXPECT_EQ(read.gaps()[0].events, run.chunks[kDamaged].events.size());
  EXPECT_TRUE(
      std::all_of(read.gaps().begin() + 1, read.gaps().end(), [](const Gap& gap) { return gap.cut_off; }));
}

TEST_F(RecordingTest, DamagedLevelsOfDetailAreMadeAgain) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 100, .chunk_events = 500});
  const Store whole = whole_of(run);
  for (const char* damage :
       {"UPDATE blocks SET bytes = substr(bytes, 1, 40) || x'00' || substr(bytes, 42) WHERE id % 2 = 0",
        "UPDATE levels SET bytes = substr(bytes, 1, 90) || x'0102' || substr(bytes, 93)",
        "DELETE FROM blocks WHERE id = (SELECT min(id) FROM blocks)", "UPDATE tails SET bytes = x'00'",
        "UPDATE levels SET statuses = x'00' WHERE id % 2 = 0"}) {
    SCOPED_TRACE(damage);
    const std::string path = write("levels.zscope", run);
    change(path, damage);
    RecordingInfo info;
    const Store read = open_recording(path, &info);
    EXPECT_TRUE(mentions(info, "made again")) << testing::PrintToString(info.problems);
    EXPECT_EQ(info.chunks, run.chunks.size());
    expect_same_tables(whole, read);
    expect_same_lanes(whole, read, 7, 2);
  }
}

TEST_F(RecordingTest, DamageThatIsMetWhileLookingIsNamed) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 200, .chunk_events = 500});
  const std::string path = write("met.zscope", run);
  const Store whole = whole_of(run);
  // The last bytes of a chunk hold events that are not of the state.
  change(path,
         "UPDATE chunks SET bytes = substr(bytes, 1, length(bytes) - 100) || x'00' || "
         "substr(bytes, length(bytes) - 98) WHERE id = (SELECT min(id) FROM chunks)");
  RecordingInfo info;
  const Store read = open_recording(path, &info, Verify::as_read);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_TRUE(read.gaps().empty());
  const std::uint64_t before = read.revision();
  const LaneId lane{0, ev::StreamId::compute};
  const std::size_t all = whole.spans(lane, 1).size();
  const std::vector<Span> seen = read.spans(lane, 1);
  EXPECT_LT(seen.size(), all);
  EXPECT_GT(seen.size(), all / 3);  // the other blocks are whole
  ASSERT_EQ(read.problems().size(), 1U);
  EXPECT_NE(read.problems()[0].find("checksum"), std::string::npos);
  EXPECT_NE(read.problems()[0].find("rank 0, sequence 0"), std::string::npos);
  std::vector<Density> columns(100);
  read.density(lane, 1, 0, whole.end_ns(), columns);
  EXPECT_EQ(columns[1].busy, 0.0F);  // nothing is made up where it is damaged
  EXPECT_GT(columns[97].busy, 0.0F);
  // It does not look like a time in which nothing happened.
  EXPECT_GT(read.revision(), before);
  ASSERT_EQ(read.gaps().size(), 1U);
  const Gap gap = read.gaps()[0];
  EXPECT_TRUE(gap.damaged);
  EXPECT_EQ(gap.rank, 0U);
  EXPECT_EQ(gap.begin_ns, 0);
  // A span that continues into an undamaged part is known with its begin.
  EXPECT_GT(seen.front().end_ns, gap.end_ns);
  EXPECT_GT(gap.end_ns, whole.end_ns() / 50);
  EXPECT_GT(gap.events, 7'500U);
  EXPECT_THAT(what_is_missing(gap), testing::HasSubstr("damaged"));
  (void)read.spans(lane, 1);
  EXPECT_EQ(read.gaps().size(), 1U);  // found once
}

TEST_F(RecordingTest, DamagedStatesAreMetByAQuestionAboutTheState) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 200, .chunk_events = 500});
  const std::string path = write("states.zscope", run);
  // Behind the header of 136 bytes lie the events of the state.
  change(path,
         "UPDATE chunks SET bytes = substr(bytes, 1, 300) || x'0000' || substr(bytes, 303) "
         "WHERE id = (SELECT min(id) FROM chunks)");
  const Store read = open_recording(path, nullptr, Verify::as_read);
  (void)read.spans({0, ev::StreamId::compute}, 1);
  EXPECT_TRUE(read.gaps().empty());  // these are whole, and shown
  (void)read.memory_at(0, ev::MemoryPool::device, 1'000'000);
  ASSERT_EQ(read.gaps().size(), 1U);
  EXPECT_TRUE(read.gaps()[0].damaged);
  EXPECT_EQ(read.gaps()[0].begin_ns, 0);
}

TEST_F(RecordingTest, WrongFilesAreRefusedInWords) {
  EXPECT_NE(refusal(file("nothing.zscope")).find("no such file"), std::string::npos);
  EXPECT_NE(refusal(folder_.string()).find("is a folder"), std::string::npos);
  std::ofstream(file("empty.zscope")).close();
  EXPECT_NE(refusal(file("empty.zscope")).find("is empty"), std::string::npos);
  ASSERT_EQ(mkfifo(file("pipe.zscope").c_str(), 0600), 0);
  EXPECT_NE(refusal(file("pipe.zscope")).find("is a pipe"), std::string::npos) << "and it was not waited for";
  std::ofstream(file("text.zscope")) << "this is not a recording, it is a text file";
  EXPECT_NE(refusal(file("text.zscope")).find("not a Shardscope recording"), std::string::npos);

  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file("other.zscope").c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE t(x)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_NE(refusal(file("other.zscope")).find("not a Shardscope recording"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::store
