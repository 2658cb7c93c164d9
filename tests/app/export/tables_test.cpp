// CSV and SQLite exports hold what the store holds.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <vector>

#include "app/export/csv.h"
#include "app/export/sqlite.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/export/read_tables.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
namespace fs = std::filesystem;

class TablesTest : public testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

/// One rank, two steps; of the second a stretch in which a module ended was dropped.
store::Store store_with_a_gap() {
  store::Store store;
  ev::RunTables tables;
  tables.world = 1;
  tables.modules = {{0, ev::kNoId, "", "Root", {}, true}};
  store.set_tables(0, tables);
  store::Chunk chunk;
  const auto event = [&](std::uint64_t at, ev::EventKind kind, ev::StreamId stream, std::uint32_t a) {
    chunk.events.push_back({.ticks = at, .kind = kind, .stream = stream, .a = a});
  };
  for (std::uint32_t step = 0; step < 2; ++step) {
    const std::uint64_t at = step * 1000;
    event(at, ev::EventKind::step_begin, ev::StreamId::host, step);
    event(at + 100, ev::EventKind::module_begin, ev::StreamId::compute, 0);
    if (step == 0) event(at + 600, ev::EventKind::module_end, ev::StreamId::compute, 0);
    event(at + 900, ev::EventKind::step_end, ev::StreamId::host, step);
  }
  chunk.dropped_before = 1;
  chunk.missing_begin_ns = 1400;
  chunk.missing_end_ns = 1700;
  store.ingest(chunk);
  return store;
}

TEST_F(TablesTest, UnrecordedTimeIsAPartOfAStepOfItsOwn) {
  const store::Store store = store_with_a_gap();
  (void)write_csv((folder_ / "csv").string(), store);
  const auto rows = test::parse_csv(folder_ / "csv" / "step_times.csv");
  ASSERT_EQ(rows.size(), 3U);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(rows[0], name) - rows[0].begin());
  };
  const std::vector<const char*> parts{"checkpoint_ns",   "compute_ns", "exposed_comm_ns",
                                       "exposed_copy_ns", "idle_ns",    "unrecorded_ns"};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::int64_t sum = 0;
    for (const char* part : parts) sum += std::stoll(rows[i].at(column(part)));
    EXPECT_EQ(sum, std::stoll(rows[i].at(column("total_ns"))));
  }
  EXPECT_EQ(rows[1].at(column("unrecorded_ns")), "0");
  EXPECT_EQ(rows[2].at(column("unrecorded_ns")), "300");
  EXPECT_EQ(rows[2].at(column("compute_ns")), "300");
  EXPECT_EQ(rows[2].at(column("idle_ns")), "300");
  EXPECT_EQ(rows[2].at(column("events_missing")), "1");
}

TEST_F(TablesTest, CsvHoldsEverySpanStepAndParameter) {
  const store::Store store = store::make_synthetic_store();
  const std::vector<std::string> paths = write_csv((folder_ / "csv").string(), store);
  EXPECT_EQ(paths.size(), 14U);
  for (const std::string& path : paths) {
    const auto rows = test::parse_csv(path);
    for (const auto& row : rows) ASSERT_EQ(row.size(), rows[0].size()) << path;
  }
  std::size_t spans = 0;
  for (const store::LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) spans += store.spans(lane, d).size();
  }
  EXPECT_EQ(test::parse_csv(folder_ / "csv/spans.csv").size(), spans + 1);
  const auto steps = test::parse_csv(folder_ / "csv/steps.csv");
  ASSERT_EQ(steps.size(), store.steps().size() + 1);
  EXPECT_EQ(std::stod(steps[1][5]), store.steps()[0].loss);
  EXPECT_EQ(test::parse_csv(folder_ / "csv/params.csv").size(), store.tables().params.size() + 1);
}

TEST_F(TablesTest, CsvQuotesAndLeavesMissingValuesEmpty) {
  store::Store store;
  store::Chunk chunk;
  chunk.events.push_back(
      {10, ev::EventKind::step_begin, ev::StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  store.ingest(chunk);
  store.add_message({.at_ns = 1, .rank = 0, .severity = ev::Severity::warning, .text = "a, \"b\"\nc"});
  write_csv(folder_.string(), store);
  EXPECT_EQ(test::parse_csv(folder_ / "messages.csv")[1][3], "a, \"b\"\nc");
  // RFC 4180 ends every line with CR LF, the header's too.
  std::ifstream in(folder_ / "messages.csv", std::ios::binary);
  std::string header;
  std::getline(in, header);
  EXPECT_TRUE(!header.empty() && header.back() == '\r') << header;
  // Names that a spreadsheet would compute; numbers are left alone.
  store::Store formulas;
  std::int64_t at = 0;
  for (const char* text : {"=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", "a=1", "1-1"})
    formulas.add_message({.at_ns = at++, .rank = 0, .severity = ev::Severity::info, .text = text});
  const fs::path computed = folder_ / "formulas";
  write_csv(computed.string(), formulas);
  const auto texts = test::parse_csv(computed / "messages.csv");
  const std::vector<std::string> expected = {"'=HYPERLINK(1)", "'+1", "'-1", "'@SUM(A1)",
                                             "'\t=1",          "a=1", "1-1"};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(texts.at(i + 1)[3], expected[i]);
  const auto step = test::parse_csv(folder_ / "steps.csv")[1];
  EXPECT_EQ(step[2], "");  // it has not ended
  EXPECT_EQ(step[5], "");  // no loss is not a loss of zero
}

TEST_F(TablesTest, SaysByHowMuchGradientsWereClippedAndWhichWayInputGoes) {
  store::Store store;
  store::Chunk chunk;
  const auto add = [&](std::int64_t at, ev::EventKind kind, ev::StreamId lane, ev::TransferKind code,
                       std::uint32_t a, std::int64_t v0) {
    chunk.events.push_back({static_cast<std::uint64_t>(at), kind, lane, static_cast<std::uint8_t>(code), a,
                            ev::kNoId, ev::kNoId, v0, 0});
  };
  constexpr auto kNone = ev::TransferKind{};
  add(10, ev::EventKind::step_begin, ev::StreamId::host, kNone, 0, 0);
  for (const auto kind : {ev::TransferKind::input_to_device, ev::TransferKind::device_to_host}) {
    const auto at = 20 + 10 * static_cast<std::int64_t>(kind);
    add(at, ev::EventKind::transfer_begin, ev::StreamId::copy, kind, ev::kNoId, 256);
    add(at + 5, ev::EventKind::transfer_end, ev::StreamId::copy, kind, ev::kNoId, 256);
  }
  add(80, ev::EventKind::clip_factor, ev::StreamId::host, kNone, 0, std::bit_cast<std::int64_t>(0.5));
  add(85, ev::EventKind::eval_loss, ev::StreamId::host, kNone, 0, std::bit_cast<std::int64_t>(0.25));
  add(90, ev::EventKind::step_end, ev::StreamId::host, kNone, 0, 0);
  std::sort(chunk.events.begin(), chunk.events.end(),
            [](const ev::Event& a, const ev::Event& b) { return a.ticks < b.ticks; });
  store.ingest(chunk);
  write_csv(folder_.string(), store);
  const auto steps = test::parse_csv(folder_ / "steps.csv");
  EXPECT_EQ(steps[0][steps[0].size() - 2], "clip_factor");
  EXPECT_EQ(steps[1][steps[1].size() - 2], "0.5");
  EXPECT_EQ(steps[0].back(), "eval_loss");
  EXPECT_EQ(steps[1].back(), "0.25");
  const std::string path = (folder_ / "run.sqlite").string();
  write_sqlite(path, store);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* rows = nullptr;
  const char* sql =
      "SELECT copyKind, clipFactor FROM CUPTI_ACTIVITY_KIND_MEMCPY m, SHARDSCOPE_STEPS ORDER BY m.start";
  ASSERT_EQ(sqlite3_prepare_v2(db, sql, -1, &rows, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  for (const int kind : {2, 1}) {  // to the host, to the device
    ASSERT_EQ(sqlite3_step(rows), SQLITE_ROW);
    EXPECT_EQ(sqlite3_column_int(rows, 0), kind);
    EXPECT_EQ(sqlite3_column_double(rows, 1), 0.5);
  }
  EXPECT_EQ(sqlite3_step(rows), SQLITE_DONE);
  sqlite3_finalize(rows);
  sqlite3_close(db);
}

TEST_F(TablesTest, CsvSaysWhereItCannotWrite) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THROW(write_csv((folder_ / "file").string(), store::Store()), std::runtime_error);
}

/// A module's own work beside that of a module in it, a pause, an optimizer on the host, and a module between
/// two steps.
TEST_F(TablesTest, KernelsInSqliteAreAllThatWasComputed) {
  test::RunBuilder run(1);
  using enum ev::EventKind;
  using enum ev::StreamId;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::int64_t at = step * 1'000'000;
    run.span(0, at, at + 900'500, step_begin, host, step);
    run.span(0, at + 100'100, at + 500'300, module_begin, compute, 0);
    run.span(0, at + 150'700, at + 250'900, module_begin, compute, 1);
    run.span(0, at + 300'000, at + 320'000, paused_begin, host);
    run.span(0, at + 450'000, at + 700'000, optimizer_begin, worker, 0, step);
    run.span(0, at + 50'000, at + 200'000, collective_begin, gather, step, step, test::kGatherOp, 100, 400);
    run.span(0, at + 950'000, at + 960'000, module_begin, compute, 1);
  }
  const std::string path = (folder_ / "run.sqlite").string();
  write_sqlite(path, run.build());
  const test::Queries number(path);
  // Within a step no two of them overlap, so that their lengths add up.
  const std::int64_t in_steps = number(
      "SELECT sum(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
      "JOIN SHARDSCOPE_STEP_TIMES t ON k.start >= t.start AND k.end <= t.end WHERE s.value NOT LIKE "
      "'nccl:%'");
  EXPECT_EQ(in_steps, number("SELECT sum(computeNs) FROM SHARDSCOPE_STEP_TIMES"));
  EXPECT_EQ(in_steps, 3 * (500'300 - 100'100 - 20'000 + 700'000 - 500'300));
  EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE end - start = 10000"), 3);
}

TEST_F(TablesTest, SqliteAnswersQueriesForNsightSystems) {
  const store::Store store = store::make_synthetic_store();
  const std::string path = (folder_ / "run.sqlite").string();
  write_sqlite(path, store);
  const test::Queries number(path);
  std::int64_t gathers = 0;
  std::int64_t longest = 0;
  for (const store::Span& span : store.spans({1, ev::StreamId::gather}, 0)) {
    if (span.kind == ev::EventKind::collective_begin) ++gathers;
  }
  for (std::uint8_t d = 1; d < store.depth_count({1, ev::StreamId::gather}); ++d) {
    gathers += static_cast<std::int64_t>(store.spans({1, ev::StreamId::gather}, d).size());
  }
  for (const store::StepRow& step : store.steps()) longest = std::max(longest, step.end_ns - step.begin_ns);
  EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
                   "WHERE s.value = 'nccl:all_gather' AND k.deviceId = 1"),
            gathers);
  EXPECT_EQ(number("SELECT max(end - start) FROM SHARDSCOPE_STEPS"), longest);
  EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'ProfilerStep#%'"), 16);
  EXPECT_EQ(number("SELECT count(*) FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'WorldSize' AND value = '4'"),
            1);
  EXPECT_EQ(number("SELECT sum(deltaBytes) FROM SHARDSCOPE_MEMORY WHERE rank = 3"),
            store.memory_at(3, ev::MemoryPool::device, store.end_ns()).total());
  EXPECT_THROW(write_sqlite((folder_ / "no/such/x.sqlite").string(), store), std::runtime_error);
}

}  // namespace
}  // namespace shardscope::exporter
