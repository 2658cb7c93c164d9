// Every export says what was paused, what never ended and why, and what a gather holds.
#include "tests/app/store/odd_ends.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/analysis/summary.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/html_report.h"
#include "app/export/perfetto.h"
#include "app/export/sqlite.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class OddEnds : public testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  store::Store store_ = store::odd_ends();
};

TEST_F(OddEnds, Csv) {
  write_csv(folder_.string(), store_);
  std::ifstream in(folder_ / "spans.csv");
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out;
    std::istringstream rest(line.substr(0, line.find('\r')) + ",");
    for (std::string cell; std::getline(rest, cell, ',');) out.push_back(cell);
    return out;
  };
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = cells(line);
  int seen = 0;
  while (std::getline(in, line)) {
    std::map<std::string, std::string> row;
    const std::vector<std::string> values = cells(line);
    ASSERT_EQ(values.size(), names.size()) << line;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = values[i];
    if (row["kind"] == "collective_begin") {
      EXPECT_EQ(row["holds"], "net.second");
      ++seen;
    }
    if (row["rank"] == "0" && row["kind"] == "module_begin") {
      EXPECT_EQ(row["duration_ns"], "10000000");
      EXPECT_EQ(row["paused_ns"], "6470000000");
      EXPECT_EQ(row["open_until_ns"], "");
      ++seen;
    }
    if (row["rank"] == "1" && row["kind"] == "fetch_wait_begin") {
      EXPECT_EQ(row["end_ns"], "");
      EXPECT_EQ(row["duration_ns"], "");
      EXPECT_EQ(row["open_until_ns"], "25000000");
      ++seen;
    }
  }
  EXPECT_EQ(seen, 4);
  std::ifstream ranks(folder_ / "ranks.csv");
  const std::string text((std::istreambuf_iterator<char>(ranks)), {});
  EXPECT_NE(text.find(",25000000,rank 1 was killed by signal 9 (SIGKILL)"), std::string::npos) << text;
}

TEST_F(OddEnds, Chrome) {
  std::ostringstream out;
  write_chrome(out, store_, {});
  int seen = 0;
  const json trace = json::parse(out.str());
  for (const json& event : trace["traceEvents"]) {
    const json args = event.value("args", json::object());
    if (event["ph"] == "X" && event["pid"] == 1) {
      const double end_us = event["ts"].get<double>() + event["dur"].get<double>();
      EXPECT_LE(end_us, 25'000) << "no span of an ended rank continues: " << event.dump();
    }
    if (event["name"] == "net.first" && event["pid"] == 0) {
      EXPECT_EQ(args["running_ns"], 10 * store::kMs);
      EXPECT_EQ(args["paused_ns"], store::kPauseNs);
      ++seen;
    }
    if (event["name"] == "waits for parameters of net.second") {
      EXPECT_EQ(args["not_ended_because"], "rank 1 was killed by signal 9 (SIGKILL) at 0.025 s");
      ++seen;
    }
    if (event["name"] == "nccl:all_gather") {
      EXPECT_EQ(args["holds"], "net.second");
      ++seen;
    }
    if (event["name"] == "prefetch 5 issued") {
      EXPECT_EQ(args["at_module"], 1);
      ++seen;
    }
    if (event["cat"] == "rank_end" && event["pid"] == 1) {
      EXPECT_EQ(event["name"], "rank 1 was killed by signal 9 (SIGKILL)");
      ++seen;
    }
  }
  EXPECT_EQ(seen, 7);
}

TEST_F(OddEnds, Perfetto) {
  std::ostringstream out;
  write_perfetto(out, store_);
  for (const char* text :
       {"paused_ns", "not_ended", "rank 1 was killed by signal 9 (SIGKILL)", "net.second", "holds"}) {
    EXPECT_NE(out.str().find(text), std::string::npos) << text;
  }
}

TEST_F(OddEnds, Sqlite) {
  const std::string path = (folder_ / "run.sqlite").string();
  write_sqlite(path, store_);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto text = [&](const char* sql) -> std::string {
    sqlite3_stmt* rows = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &rows, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    std::string out = "no row";
    if (sqlite3_step(rows) == SQLITE_ROW) {
      const auto* cell = reinterpret_cast<const char*>(sqlite3_column_text(rows, 0));
      out = cell == nullptr ? "NULL" : cell;
    }
    sqlite3_finalize(rows);
    return out;
  };
  EXPECT_EQ(text("SELECT end - start FROM SHARDSCOPE_PAUSES WHERE rank = 0"),
            std::to_string(store::kPauseNs));
  EXPECT_EQ(text("SELECT end FROM NVTX_EVENTS WHERE text = 'waits for parameters of net.second'"), "NULL");
  EXPECT_EQ(text("SELECT state FROM SHARDSCOPE_RANKS WHERE rank = 1"),
            "rank 1 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(text("SELECT lastEvent FROM SHARDSCOPE_RANKS WHERE rank = 1"), std::to_string(store::kGoneNs));
  EXPECT_EQ(text("SELECT holds FROM SHARDSCOPE_COLLECTIVES WHERE rank = 0"), "net.second");
  EXPECT_EQ(text("SELECT end FROM SHARDSCOPE_COLLECTIVES WHERE rank = 1"), "NULL");
  sqlite3_close(db);
}

TEST_F(OddEnds, HtmlReport) {
  store::end_the_step(store_);  // the timeline is that of a completed step
  Note note;
  note.begin_ns = store::kMs;
  note.end_ns = 11 * store::kMs + store::kPauseNs;
  const std::string page = html_report(store_, analysis::summarize(store_), {}, std::nullopt, {note});
  EXPECT_NE(page.find("<td class=n>10.0 ms (+ 6.47 s paused, not counted)<td>bookmark"), std::string::npos);
  EXPECT_NE(page.find("(+ 6.47 s paused, not counted)"), std::string::npos);
  EXPECT_NE(page.find("paused by the user: 6.47 s"), std::string::npos);
  EXPECT_NE(page.find("not ended, 11.0 ms up to the last event (rank 1 was killed by signal 9 (SIGKILL)"),
            std::string::npos);
  EXPECT_NE(page.find("all_gather #9 of net.second"), std::string::npos);
  EXPECT_NE(page.find("Rank 1 was killed by signal 9 (SIGKILL)"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::exporter
