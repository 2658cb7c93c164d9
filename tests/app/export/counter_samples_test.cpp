// Sampled counters in the Chrome trace and in SQLite: values, units, and what a part has of them.
#include "app/export/counter_samples.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/sqlite.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/export/read_tables.h"

namespace shardscope::exporter {
namespace {

using namespace test;

constexpr std::int64_t kSampleSecond = 1'000'000'000;

/// Rank 1: a queue of 3, then 8 requests; 20, then 50 MB sent in a second each.
store::Store& counted(RunBuilder& run) {
  const auto sample = [&](std::int64_t at_ns, std::uint32_t name, std::uint32_t unit, double value,
                          bool total) {
    run.instant(1, at_ns, EventKind::counter, StreamId::host, name, unit, ev::kNoId, total ? 1 : 0,
                std::bit_cast<std::int64_t>(value));
  };
  sample(0, 1, 2, 3, false);
  sample(2 * kSampleSecond, 1, 2, 8, false);
  sample(kSampleSecond, 3, 4, 100, true);
  sample(2 * kSampleSecond, 3, 4, 120, true);
  sample(3 * kSampleSecond, 3, 4, 170, true);
  store::Store& store = run.build();
  store.add_name(1, 1, "queue");
  store.add_name(1, 2, "requests");
  store.add_name(1, 3, "sent");
  store.add_name(1, 4, "MB");
  return store;
}

std::vector<double> chrome_values(const store::Store& store, const ExportPart& part,
                                  const std::string& name) {
  std::ostringstream out;
  write_chrome(out, store, part);
  std::vector<double> values;
  const auto trace = nlohmann::json::parse(out.str());
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C" || event["name"] != name) continue;
    EXPECT_EQ(event["pid"], 1);
    values.push_back(event["args"].at(name).get<double>());
  }
  return values;
}

TEST(CounterSamples, AreCountersOfTheRanksProcessInAChromeTrace) {
  RunBuilder run(2);
  const store::Store& store = counted(run);
  EXPECT_EQ(chrome_values(store, {}, "queue (requests)"), (std::vector<double>{3, 8}));
  EXPECT_EQ(chrome_values(store, {}, "sent (MB/s)"), (std::vector<double>{20, 50}));
  EXPECT_TRUE(chrome_values(store, {.ranks = {0}}, "queue (requests)").empty());
  const std::int64_t from = kSampleSecond + kSampleSecond / 2;
  EXPECT_EQ(chrome_values(store, {.range = {.from_ns = from}}, "queue (requests)"), (std::vector<double>{8}));
}

TEST(CounterSamples, AreATableOfCsv) {
  RunBuilder run(2);
  const store::Store& store = counted(run);
  std::string folder = (std::filesystem::temp_directory_path() / "shardscope-counters-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  (void)write_csv(folder, store);
  std::ifstream in(folder + "/counters.csv");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"rank,name,unit,at_ns,until_ns,value", "1,queue,requests,0,,3",
                                             "1,queue,requests,2000000000,,8",
                                             "1,sent,MB/s,1000000000,2000000000,20",
                                             "1,sent,MB/s,2000000000,3000000000,50"}));
  std::filesystem::remove_all(folder);
}

TEST(CounterSamples, AreRowsInSqlite) {
  RunBuilder run(2);
  const store::Store& store = counted(run);
  std::string folder = (std::filesystem::temp_directory_path() / "shardscope-counters-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/run.sqlite";
  write_sqlite(path, store);
  const Queries number(path);
  EXPECT_EQ(number("SELECT count(*) FROM SHARDSCOPE_COUNTERS"), 4);
  EXPECT_EQ(
      number(
          "SELECT sum(value) FROM SHARDSCOPE_COUNTERS WHERE name = 'queue' AND unit = 'requests' AND end IS "
          "NULL AND rank = 1"),
      11);
  EXPECT_EQ(number("SELECT sum(value * (end - start)) FROM SHARDSCOPE_COUNTERS WHERE unit = 'MB/s'"),
            70 * kSampleSecond);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shardscope::exporter
