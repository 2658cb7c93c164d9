// CSV and SQLite exports of a part of a run: what the whole ones have of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/part.h"
#include "app/export/sqlite.h"
#include "app/store/names.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/export/read_tables.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
namespace fs = std::filesystem;
using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const fs::path& path) {
  const auto cells = test::parse_csv(path);
  std::vector<Row> out;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    Row& row = out.emplace_back();
    for (std::size_t c = 0; c < cells[0].size(); ++c) row[cells[0][c]] = cells[i].at(c);
  }
  return out;
}

class PartOfTables : public testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  store::Store store_ = store::make_synthetic_store();
  std::int64_t from_ = store_.end_ns() / 3, to_ = store_.end_ns() / 2;
  ExportPart part_{.ranks = {1, 3}, .range = {from_, to_}};

  /// Rows of the whole export that the part has: those of its ranks that overlap the range.
  std::vector<Row> expected(const char* table, const char* begin, const char* end) const {
    std::vector<Row> out = rows_of(folder_ / "whole" / table);
    std::erase_if(out, [&](const Row& row) {
      const std::int64_t begins = std::stoll(row.at(begin)), ends = std::stoll(row.at(end));
      const bool rank = row.at("rank") == "1" || row.at("rank") == "3";
      return !rank || begins >= to_ || (ends <= from_ && begins < from_);
    });
    return out;
  }
};

TEST_F(PartOfTables, CsvHasWhatOverlapsOfItsRanks) {
  (void)write_csv((folder_ / "whole").string(), store_);
  const auto paths = write_csv((folder_ / "part").string(), store_, part_);
  EXPECT_EQ(paths.size(), 13U) << "no bandwidths.csv: its figures are of all measured steps";
  const std::vector<Row> spans = expected("spans.csv", "begin_ns", "end_ns");
  EXPECT_EQ(rows_of(folder_ / "part/spans.csv"), spans);
  EXPECT_GT(std::ranges::count_if(spans, [&](const Row& s) { return std::stoll(s.at("begin_ns")) < from_; }),
            1)
      << "whole, not cut";
  EXPECT_EQ(rows_of(folder_ / "part/events.csv"), expected("events.csv", "at_ns", "at_ns"));
  EXPECT_EQ(rows_of(folder_ / "part/step_times.csv"), expected("step_times.csv", "begin_ns", "end_ns"));
  EXPECT_EQ(rows_of(folder_ / "part/ranks.csv").size(), 2U);
  const auto steps = rows_of(folder_ / "part/steps.csv");
  EXPECT_LT(steps.size(), store_.steps().size());
  EXPECT_FALSE(steps.empty());
}

TEST_F(PartOfTables, CsvHasTheStateAtItsBeginBeforeTheChanges) {
  (void)write_csv((folder_ / "part").string(), store_, part_);
  std::map<std::string, std::int64_t> bytes;  // by rank
  std::size_t states = 0;
  for (const Row& row : rows_of(folder_ / "part/memory.csv")) {
    EXPECT_GE(std::stoll(row.at("at_ns")), from_);
    if (row.at("pool") == store::name_of(ev::MemoryPool::device))
      bytes[row.at("rank")] += std::stoll(row.at("delta_bytes"));
    states += row.at("pool_bytes_after").empty() ? 1 : 0;
  }
  EXPECT_GT(states, 2U);
  for (const std::uint32_t rank : {1U, 3U}) {
    EXPECT_EQ(bytes.at(std::to_string(rank)),
              store_.memory_at(rank, ev::MemoryPool::device, to_ - 1).total());
  }
  // The last row of each parameter is what the run had then, whether it changed in the range or before.
  std::map<std::uint32_t, Row> last;
  for (const Row& row : rows_of(folder_ / "part/status.csv")) {
    if (row.at("rank") == "3") last[static_cast<std::uint32_t>(std::stoul(row.at("param")))] = row;
  }
  std::size_t before = 0;
  for (const auto& [param, row] : last) {
    const store::ParamState state = store_.param_state(3, param, to_ - 1);
    EXPECT_EQ(row.at("status"), store::status_name(state.status)) << param;
    EXPECT_EQ(std::stoll(row.at("at_ns")), state.since_ns) << param;
    before += state.since_ns < from_ ? 1 : 0;
  }
  std::size_t changed = 0;
  for (std::uint32_t param = 0; param < store_.tables().params.size(); ++param)
    changed += store_.status_history(3, param, to_ - 1, 1).empty() ? 0 : 1;
  EXPECT_EQ(last.size(), changed);
  EXPECT_GT(before, 0U);
}

/// Ranks never begin a step at once: the last one's begin of a step is after the first one's end of it.
TEST_F(PartOfTables, OfAStepHasThatOfEachRankAndNoOther) {
  ExportPart part;
  ASSERT_TRUE(choose_steps(store_, 3, 3, part));
  ASSERT_FALSE(part.whole());
  (void)write_csv((folder_ / "part").string(), store_, part);
  const std::size_t ranks = store_.ranks().size();
  const auto steps = rows_of(folder_ / "part/steps.csv");
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].at("step"), "3");
  const auto times = rows_of(folder_ / "part/step_times.csv");
  ASSERT_EQ(times.size(), ranks);
  EXPECT_TRUE(std::ranges::all_of(times, [](const Row& row) { return row.at("step") == "3"; }));
  std::map<std::string, std::size_t> labels;
  for (const Row& span : rows_of(folder_ / "part/spans.csv")) {
    if (span.at("label").starts_with("ProfilerStep")) ++labels[span.at("label")];
  }
  EXPECT_EQ(labels, (std::map<std::string, std::size_t>{{"ProfilerStep#3", ranks}}));

  write_sqlite((folder_ / "part.sqlite").string(), store_, part);
  const test::Queries in_part((folder_ / "part.sqlite").string());
  EXPECT_EQ(in_part("SELECT count(*) FROM SHARDSCOPE_STEPS"), 1);
  EXPECT_EQ(in_part("SELECT sum(step = 3) FROM SHARDSCOPE_STEP_TIMES"), static_cast<std::int64_t>(ranks));
  EXPECT_EQ(in_part("SELECT sum(step != 3) FROM SHARDSCOPE_STEP_TIMES"), 0);

  std::ostringstream chrome;
  write_chrome(chrome, store_, part);
  const std::string text = chrome.str();
  std::size_t losses = 0;
  for (std::size_t at = 0; (at = text.find(R"("ph":"C","name":"loss",)", at)) != std::string::npos; ++at)
    ++losses;
  EXPECT_EQ(losses, 1U);
  EXPECT_FALSE(choose_steps(store_, 1000, 1001, part));
}

TEST_F(PartOfTables, CsvRefusesAFolderWithFiguresOfTheWholeRun) {
  (void)write_csv(folder_.string(), store_);
  try {
    (void)write_csv(folder_.string(), store_, part_);
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("bandwidths.csv"), std::string::npos) << error.what();
  }
}

TEST_F(PartOfTables, ALevelLeavesOutWhatIsFiner) {
  (void)write_csv((folder_ / "csv").string(), store_, {.detail = ev::Detail::phases});
  std::size_t phases = 0;
  for (const Row& row : rows_of(folder_ / "csv/spans.csv")) {
    EXPECT_TRUE(row.at("kind") == "step_begin" || row.at("kind") == "phase_begin" ||
                row.at("kind") == "micro_step_begin")
        << row.at("kind");
    phases += row.at("kind") == "phase_begin" ? 1 : 0;
  }
  EXPECT_GT(phases, 10U);
  EXPECT_TRUE(rows_of(folder_ / "csv/memory.csv").empty());
  EXPECT_TRUE(rows_of(folder_ / "csv/status.csv").empty());
  EXPECT_EQ(rows_of(folder_ / "csv/steps.csv").size(), store_.steps().size());
}

/// Both pairs are group 0 to their ranks, so that `sequence` is alike on all four.
TEST_F(PartOfTables, CollectivesOfGroupsAreNamedByTheirRanks) {
  shardscope::test::RunBuilder builder(4, 2);
  const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::group, 0);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    for (const std::uint32_t number : {0U, 1U}) {
      for (const auto& [at, kind] :
           {std::pair(0, ev::EventKind::collective_begin), {5, ev::EventKind::collective_end}})
        builder.instant(rank, number * 10 + static_cast<std::uint32_t>(at), kind, ev::StreamId::reduce,
                        ev::group_sequence(0, number), 0, code,
                        static_cast<std::uint8_t>(ev::CollectiveOp::all_reduce), 10, 40);
    }
  }
  store::Store& store = builder.build();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ev::RunTables tables = *store.rank_tables(rank);
    const std::uint32_t first = rank / 2 * 2;
    tables.groups = {{0, "pair", ev::GroupPurpose::data, {first, first + 1}}};
    store.set_tables(rank, tables);
  }
  write_sqlite((folder_ / "groups.sqlite").string(), store);
  const test::Queries in((folder_ / "groups.sqlite").string());
  EXPECT_EQ(
      in("SELECT count(*) FROM (SELECT DISTINCT groupRanks, numberInGroup FROM SHARDSCOPE_COLLECTIVES)"), 4);
  EXPECT_EQ(in("SELECT count(*) FROM SHARDSCOPE_COLLECTIVES WHERE groupRanks = '2,3' AND numberInGroup = 1"),
            2);
  EXPECT_EQ(in("SELECT count(*) FROM SHARDSCOPE_COLLECTIVES WHERE groupName = 'pair'"), 8);
  EXPECT_EQ(in("SELECT count(DISTINCT sequence) FROM SHARDSCOPE_COLLECTIVES"), 2);
}

TEST_F(PartOfTables, SqliteHasWhatOverlapsOfItsRanks) {
  const std::string whole = (folder_ / "whole.sqlite").string(), part = (folder_ / "part.sqlite").string();
  write_sqlite(whole, store_);
  write_sqlite(part, store_, part_);
  const test::Queries in_whole(whole), in_part(part);
  const std::string of_time = " BETWEEN " + std::to_string(from_) + " AND " + std::to_string(to_ - 1);
  const std::string overlap = " start < " + std::to_string(to_) + " AND (end > " + std::to_string(from_) +
                              " OR start >= " + std::to_string(from_) + ")";
  for (const auto& [table, rank] : {std::pair("NVTX_EVENTS", "(globalTid >> 24) - 1"),
                                    {"CUPTI_ACTIVITY_KIND_KERNEL", "deviceId"},
                                    {"SHARDSCOPE_COLLECTIVES", "rank"},
                                    {"SHARDSCOPE_STEP_TIMES", "rank"}}) {
    for (const char* what : {"count(*)", "sum(end - start)", "min(start)"}) {
      const std::string select = std::string("SELECT ") + what + " FROM " + table;
      const std::string where = std::string(" WHERE ") + rank + " IN (1, 3) AND" + overlap;
      EXPECT_EQ(in_part(select.c_str()), in_whole((select + where).c_str())) << select;
      EXPECT_LT(in_part((std::string("SELECT count(*) FROM ") + table).c_str()),
                in_whole((std::string("SELECT count(*) FROM ") + table).c_str()));
    }
  }
  EXPECT_LT(in_part("SELECT min(start) FROM NVTX_EVENTS"), from_) << "whole, not cut";
  // Changes, and before them what held when the range began.
  const std::string changes = "SELECT count(*) FROM SHARDSCOPE_MEMORY WHERE at" + of_time;
  EXPECT_EQ(in_part("SELECT count(*) FROM SHARDSCOPE_MEMORY WHERE poolBytesAfter IS NOT NULL"),
            in_whole((changes + " AND rank IN (1, 3)").c_str()));
  EXPECT_EQ(in_part("SELECT sum(deltaBytes) FROM SHARDSCOPE_MEMORY WHERE rank = 3 AND pool = 'device'"),
            store_.memory_at(3, ev::MemoryPool::device, to_ - 1).total());
  EXPECT_GT(in_part("SELECT count(*) FROM SHARDSCOPE_PARAM_STATUS WHERE at < (SELECT min(at) FROM "
                    "SHARDSCOPE_MEMORY)"),
            0);
  EXPECT_EQ(in_part("SELECT count(*) FROM sqlite_master WHERE name = 'SHARDSCOPE_BANDWIDTHS'"), 0);
  EXPECT_EQ(in_whole("SELECT count(*) FROM sqlite_master WHERE name = 'SHARDSCOPE_BANDWIDTHS'"), 1);
  EXPECT_EQ(in_part("SELECT count(*) FROM SHARDSCOPE_RANKS"), 2);
}

}  // namespace
}  // namespace shardscope::exporter
