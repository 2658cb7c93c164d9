// A file of another version gets one clear message; one that was written when the format was made says what
// it said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/tile.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

SyntheticRun short_run() { return make_synthetic_run({.world = 1, .steps = 2, .layers = 1}); }

TEST_F(RecordingTest, ANewerFileSaysToUpdate) {
  const std::string path = write("newer.zscope", short_run());
  change(path, "PRAGMA user_version = 9; UPDATE meta SET value = value");
  EXPECT_THAT(refusal(path),
              testing::HasSubstr("has format version 9, this program reads up to 8; update Shardscope"));
}

TEST_F(RecordingTest, AFileOfBeforeTheFirstReleaseSaysToRecordAgain) {
  const std::string path = write("older.zscope", short_run());
  change(path,
         "ALTER TABLE ranks RENAME COLUMN exit_message TO last_words; PRAGMA user_version = 6; UPDATE meta "
         "SET value = value");
  EXPECT_THAT(refusal(path),
              testing::HasSubstr("has format version 6, of before the first release; this program reads 7 "
                                 "and 8: record the run again"));
}

/// A number alone is no other format.
TEST_F(RecordingTest, AChangedVersionNumberCostsItsOwnCheckOnly) {
  const std::string path = write("changed.zscope", short_run());
  change(path, "PRAGMA user_version = 3; UPDATE meta SET value = value");
  RecordingInfo info;
  const Store read = open_recording(path, &info, Verify::everything);
  EXPECT_GT(read.event_count(), 0U);
  EXPECT_THAT(info.problems,
              testing::ElementsAre(testing::HasSubstr("another format version than it was written in")));
}

/// Numbers that stand here, so that neither a change of what makes runs up nor one of the format passes. The
/// file is what `make_synthetic_recording F world=1 steps=40 layers=1` wrote.
TEST_F(RecordingTest, AFileOfTheFormatSaysWhatItSaid) {
  const std::string path = SHARDSCOPE_TEST_DATA "/version7.zscope";
  RecordingInfo info;
  const Store read = open_recording(path, &info, Verify::everything);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.format_version, 7);
  EXPECT_EQ(info.events, 20'611U);
  EXPECT_EQ(info.chunks, 21U);
  EXPECT_EQ(read.end_ns(), 632'296'772);
  EXPECT_EQ(read.tables().params.size(), 16U);
  std::map<ev::EventKind, std::pair<std::int64_t, std::int64_t>> spans;  // count and time
  for (const SpanTotal& total : read.span_totals()) {
    spans[total.kind].first += total.count;
    spans[total.kind].second += total.total_ns;
  }
  const auto is = [&](ev::EventKind kind, std::int64_t count, std::int64_t ns) {
    EXPECT_EQ(spans[kind], std::pair(count, ns)) << static_cast<int>(kind);
  };
  is(ev::EventKind::collective_begin, 604, 25'020'998);
  is(ev::EventKind::fetch_wait_begin, 560, 4'127'735);
  is(ev::EventKind::module_begin, 1'280, 2'509'618'191);
  is(ev::EventKind::phase_begin, 161, 632'276'772);
  is(ev::EventKind::step_begin, 40, 632'236'081);
  const auto peak = read.memory_peak(0, ev::MemoryPool::device);
  ASSERT_TRUE(peak.has_value());
  EXPECT_EQ(peak->total(), 18'960'640);
  ASSERT_EQ(read.steps().size(), 40U);
  double loss = 0;
  for (const StepRow& step : read.steps()) loss += step.loss;
  EXPECT_DOUBLE_EQ(loss, 172.43549303159392);

  // Tiles and blocks are read as they are: what is damaged would be made again, or left out, in silence.
  Database database(path, Database::Access::read);
  EXPECT_EQ(database.integer("SELECT count(*) FROM blocks"), 3);
  Statement rows = database.prepare("SELECT bytes FROM tiles ORDER BY id");
  std::uint64_t tiles = 0, begins = 0;
  double busy_ns = 0;
  while (rows.step()) {
    const std::span<const std::byte> bytes = rows.bytes(0);
    std::array<DensityBucket, 1> all;
    decode_tile(bytes.data(), bytes.size())
        .add_to(DensityColumns{.begin_ns = 0, .end_ns = std::int64_t{1} << 40, .columns = all});
    ++tiles;
    begins += all[0].begins;
    busy_ns += all[0].busy_ns;
  }
  EXPECT_EQ(tiles, 12U);
  EXPECT_EQ(begins, 3'365U);
  EXPECT_NEAR(busy_ns, 4'444'665'969,
              4'444'665'969.0 / 127);  // which of the first and last bucket is held varies
}

}  // namespace
}  // namespace shardscope::store
