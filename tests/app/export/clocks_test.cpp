// How well a rank's clock is known stands beside the rank wherever ranks are listed, and what is not known is
// shown as missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/analysis/quantity_text.h"
#include "app/analysis/summary.h"
#include "app/export/csv.h"
#include "app/export/html_report.h"
#include "app/store/chunk.h"
#include "app/store/store.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
constexpr std::int64_t kSecond = 1'000'000'000;

/// Rank 0 sends for two seconds, in which its clock loses 30 µs of the collector's; rank 1 only once.
store::Store two_ranks() {
  store::Store store;
  const auto received = [&](std::uint32_t rank, std::uint64_t sequence, std::int64_t at,
                            std::int64_t offset) {
    store::Chunk chunk;
    chunk.rank = rank;
    chunk.sequence = sequence;
    chunk.clock_offset_ns = offset;
    chunk.clock_residual_ns = 2'500;
    const auto tick = [&](std::int64_t ns) { return static_cast<std::uint64_t>(ns); };
    const auto step = static_cast<std::uint32_t>(sequence);
    chunk.events = {
        {tick(at), ev::EventKind::step_begin, ev::StreamId::host, 0, step, ev::kNoId, ev::kNoId, 0, 0},
        {tick(at + 100), ev::EventKind::step_end, ev::StreamId::host, 0, step, ev::kNoId, ev::kNoId, 0, 0}};
    store.ingest(chunk);
  };
  received(0, 0, kSecond, 1'000'000);
  received(1, 0, kSecond, -7'000);
  received(0, 1, 3 * kSecond - 30'000, 1'030'000);
  return store;
}

TEST(Clocks, DriftIsATextInPartsPerMillion) {
  EXPECT_EQ(analysis::ppm_text({.ppb = -80'149, .bound_ppb = 2'250}), "-80.1 ± 2.2");
  EXPECT_EQ(analysis::ppm_text({.ppb = 15'000, .bound_ppb = 2'500}), "15.0 ± 2.5");
  EXPECT_EQ(analysis::ppm_text({.ppb = -30, .bound_ppb = 60}), "0.0 ± 0.1")
      << "no sign where nothing is left";
}

TEST(Clocks, StandInTheRanksOfTheReport) {
  const store::Store store = two_ranks();
  const std::string page = html_report(store, analysis::summarize(store), {});
  const auto row = [&](const std::string& rank) {
    const std::size_t begin = page.find("<tr><td>" + rank + "<td>", page.find("clock offset"));
    return page.substr(begin, page.find("</tr>", begin) - begin);
  };
  EXPECT_THAT(row("0"), testing::HasSubstr("1.03 ms<td class=n>±2.50 µs<td class=n>15.0 ± 2.5 ppm"));
  EXPECT_THAT(row("1"), testing::HasSubstr("-7.00 µs<td class=n>±2.50 µs<td class=n>—"));
}

TEST(Clocks, StandInTheRanksOfCsv) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  write_csv(folder.string(), two_ranks());
  std::ifstream in(folder / "ranks.csv", std::ios::binary);
  std::string header, first, second;
  std::getline(in, header);
  std::getline(in, first);
  std::getline(in, second);
  EXPECT_THAT(header,
              testing::HasSubstr(
                  ",clock_offset_ns,clock_residual_ns,simulated,clock_drift_ppb,clock_drift_bound_ppb"));
  EXPECT_THAT(first, testing::HasSubstr(",1030000,2500,0,15000,2500"));
  EXPECT_THAT(second, testing::HasSubstr(",-7000,2500,0,,"));
}

}  // namespace
}  // namespace shardscope::exporter
