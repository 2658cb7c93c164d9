#include "runtime/profile/gpu_lanes.h"

#include <gtest/gtest.h>

namespace shardscope::profile {
namespace {

using instrumentation::StreamId;

TEST(GpuLanes, KnownStreamsHaveTheirOwnLanesAndOthersTheOnesLeft) {
  GpuLanes lanes;
  lanes.know(7, StreamId::gpu_compute);
  lanes.know(9, StreamId::gpu_gather);
  EXPECT_EQ(lanes.place(7, 0, 10, 0)->lane, StreamId::gpu_compute);
  EXPECT_EQ(lanes.place(9, 0, 10, 0)->lane, StreamId::gpu_gather);
  EXPECT_EQ(lanes.place(30, 0, 10, 0)->lane, StreamId::gpu_other_1);
  EXPECT_EQ(lanes.place(31, 0, 10, 0)->lane, StreamId::gpu_other_2);
  EXPECT_EQ(lanes.place(30, 10, 20, 0)->lane, StreamId::gpu_other_1);
  EXPECT_EQ(lanes.place(32, 0, 10, 0)->lane, StreamId::gpu_other_3);
  // A fourth finds room while another's lane is free, and none while all are busy.
  EXPECT_EQ(lanes.place(33, 12, 14, 0)->lane, StreamId::gpu_other_3);
  EXPECT_EQ(lanes.place(33, 13, 15, 0)->lane, StreamId::gpu_other_2);
  EXPECT_FALSE(lanes.place(33, 13, 15, 0).has_value());
}

TEST(GpuLanes, WhatOverlapsOnItsOwnStreamGoesBesideAndIsNotMoved) {
  GpuLanes lanes;
  lanes.know(7, StreamId::gpu_compute);
  EXPECT_EQ(lanes.place(7, 100, 200, 5)->lane, StreamId::gpu_compute);
  const auto beside = lanes.place(7, 150, 250, 5);
  ASSERT_TRUE(beside.has_value());
  EXPECT_EQ(beside->lane, StreamId::gpu_other_3);
  EXPECT_EQ(beside->begin_ns, 150);
  // The lane itself goes on after what it holds.
  EXPECT_EQ(lanes.place(7, 200, 210, 5)->lane, StreamId::gpu_compute);
}

TEST(GpuLanes, AnOverlapWithinTheErrorOfTheClocksIsNone) {
  GpuLanes lanes;
  lanes.know(7, StreamId::gpu_compute);
  (void)lanes.place(7, 100, 200, 0);
  const auto next = lanes.place(7, 196, 230, 5);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->lane, StreamId::gpu_compute);
  EXPECT_EQ(next->begin_ns, 200);
  EXPECT_NE(lanes.place(7, 224, 260, 5)->lane, StreamId::gpu_compute);
}

/// PyTorch runs all-gathers and reduce-scatters on one stream of NCCL's.
TEST(GpuLanes, WorkThatSaysWhatItIsHasTheLaneOfSuchWork) {
  GpuLanes lanes;
  lanes.know(7, StreamId::gpu_compute);
  EXPECT_EQ(lanes.place(20, 0, 10, 0, StreamId::gpu_gather)->lane, StreamId::gpu_gather);
  EXPECT_EQ(lanes.place(20, 10, 20, 0, StreamId::gpu_reduce)->lane, StreamId::gpu_reduce);
  EXPECT_EQ(lanes.place(20, 20, 30, 0, StreamId::gpu_gather)->lane, StreamId::gpu_gather);
  // On a stream that is known the stream decides.
  EXPECT_EQ(lanes.place(7, 0, 10, 0, StreamId::gpu_copy)->lane, StreamId::gpu_compute);
  // Two communicators at once: the second has room beside; neither took a lane from streams that say nothing.
  EXPECT_EQ(lanes.place(21, 25, 35, 0, StreamId::gpu_gather)->lane, StreamId::gpu_other_3);
  EXPECT_EQ(lanes.place(30, 0, 5, 0)->lane, StreamId::gpu_other_1);
  EXPECT_EQ(lanes.place(31, 0, 5, 0)->lane, StreamId::gpu_other_2);
}

}  // namespace
}  // namespace shardscope::profile
