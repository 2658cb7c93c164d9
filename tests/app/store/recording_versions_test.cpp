// Files that earlier programs wrote open, and say the same.
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

/// The file holds what `make_synthetic_recording F world=WORLD steps=STEPS layers=1` wrote before the next
/// version.
void expect_opens(int version, std::uint32_t steps, std::uint32_t world = 2) {
  RecordingInfo info;
  const Store read =
      open_recording(SHARDSCOPE_TEST_DATA "/version" + std::to_string(version) + ".zscope", &info);
  EXPECT_EQ(info.format_version, version);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  Store now;
  now.seal_after(SIZE_MAX);
  fill_store(now, make_synthetic_run({.world = world, .steps = steps, .layers = 1}));
  EXPECT_EQ(read.event_count(), now.event_count());
  expect_same_run(read, now);
  expect_same_states(now, read, 3, 30);
  // Blocks of that time do not count unmatched span ends; where they are made from the events it is
  // known.
  EXPECT_EQ(read.unmatched_ends().has_value(), version < 3);
}

TEST_F(RecordingTest, AFileOfVersion1Opens) { expect_opens(1, 1); }
TEST_F(RecordingTest, AFileOfVersion2Opens) { expect_opens(2, 40); }
TEST_F(RecordingTest, AFileOfVersion3WithBlocksOpens) { expect_opens(3, 40); }
TEST_F(RecordingTest, AFileOfVersion4WithoutTilesOpens) { expect_opens(4, 40); }
TEST_F(RecordingTest, AFileOfVersion5WithTilesOpens) { expect_opens(5, 40, 1); }

/// Numbers that stand here, so that neither a change of what makes runs up nor one of the format passes.
TEST_F(RecordingTest, AFileOfVersion5SaysWhatItSaid) {
  const std::string path = SHARDSCOPE_TEST_DATA "/version5.zscope";
  RecordingInfo info;
  const Store read = open_recording(path, &info);
  EXPECT_THAT(info.problems, testing::IsEmpty());
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
