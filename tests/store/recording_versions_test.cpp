// Files that earlier programs wrote open, and say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "app/store/recording.h"
#include "tests/store/recording_files.h"

namespace shardscope::store {
namespace {

/// The file holds what `make_synthetic_recording F world=2 steps=STEPS layers=1` wrote before the next
/// version.
void expect_opens(int version, std::uint32_t steps) {
  RecordingInfo info;
  const Store read =
      open_recording(SHARDSCOPE_TEST_DATA "/version" + std::to_string(version) + ".zscope", &info);
  EXPECT_EQ(info.format_version, version);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  Store now;
  now.seal_after(SIZE_MAX);
  fill_store(now, make_synthetic_run({.world = 2, .steps = steps, .layers = 1}));
  EXPECT_EQ(read.event_count(), now.event_count());
  expect_same_run(read, now);
  expect_same_states(now, read, 3, 30);
}

TEST_F(RecordingTest, AFileOfVersion1Opens) { expect_opens(1, 1); }
TEST_F(RecordingTest, AFileOfVersion2Opens) { expect_opens(2, 40); }
TEST_F(RecordingTest, AFileOfVersion3WithBlocksOpens) { expect_opens(3, 40); }
TEST_F(RecordingTest, AFileOfVersion4WithoutTilesOpens) { expect_opens(4, 40); }

}  // namespace
}  // namespace shardscope::store
