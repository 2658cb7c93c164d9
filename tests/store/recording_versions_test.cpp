// Files that earlier programs wrote open, and say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/store/recording.h"
#include "tests/store/recording_files.h"

namespace shardscope::store {
namespace {

TEST_F(RecordingTest, AFileOfVersion1Opens) {
  // Written by the program before version 2: make_synthetic_recording F world=2 steps=1 layers=1
  RecordingInfo info;
  const Store read = open_recording(SHARDSCOPE_TEST_DATA "/version1.zscope", &info);
  EXPECT_EQ(info.format_version, 1);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  EXPECT_EQ(info.chunks, 2U);
  EXPECT_EQ(read.event_count(), 1130U);
  Store now;
  fill_store(now, make_synthetic_run({.world = 2, .steps = 1, .layers = 1}));
  expect_same_run(read, now);
}

TEST_F(RecordingTest, AFileOfVersion2Opens) {
  // Written by the program before version 3: make_synthetic_recording F world=2 steps=40 layers=1
  RecordingInfo info;
  const Store read = open_recording(SHARDSCOPE_TEST_DATA "/version2.zscope", &info);
  EXPECT_EQ(info.format_version, 2);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  Store now;
  now.seal_after(SIZE_MAX);
  fill_store(now, make_synthetic_run({.world = 2, .steps = 40, .layers = 1}));
  expect_same_run(read, now);
  expect_same_states(now, read, 3, 30);
}

TEST_F(RecordingTest, AFileOfVersion3Opens) {
  // Written by the program before version 4, with blocks: make_synthetic_recording F world=2 steps=40
  // layers=1
  RecordingInfo info;
  const Store read = open_recording(SHARDSCOPE_TEST_DATA "/version3.zscope", &info);
  EXPECT_EQ(info.format_version, 3);
  EXPECT_TRUE(info.complete);
  EXPECT_THAT(info.problems, testing::IsEmpty());
  Store now;
  now.seal_after(SIZE_MAX);
  fill_store(now, make_synthetic_run({.world = 2, .steps = 40, .layers = 1}));
  expect_same_run(read, now);
  expect_same_states(now, read, 3, 30);
}

}  // namespace
}  // namespace shardscope::store
