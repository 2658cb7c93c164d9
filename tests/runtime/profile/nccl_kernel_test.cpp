#include "runtime/profile/nccl_kernel.h"

#include <gtest/gtest.h>

namespace shardscope::profile {
namespace {

using instrumentation::StreamId;

TEST(NcclKernel, ItsNameSaysTheOperation) {
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_AllGather_RING_LL"), StreamId::gpu_gather);
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_Broadcast_RING_LL"), StreamId::gpu_gather);
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"), StreamId::gpu_reduce);
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL"), StreamId::gpu_reduce);
  EXPECT_EQ(lane_of_nccl_kernel("ncclSymkDevKernel_ReduceScatter_LL_sum_f32"), StreamId::gpu_reduce);
}

TEST(NcclKernel, OthersHaveNoLaneOfTheirOwn) {
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_SendRecv"), std::nullopt);
  EXPECT_EQ(lane_of_nccl_kernel("ncclDevKernel_Generic"), std::nullopt);
  EXPECT_EQ(lane_of_nccl_kernel("nvjet_tst_128x256_64x4_AllGather"), std::nullopt);
  EXPECT_EQ(lane_of_nccl_kernel("Kernel_AllGather"), std::nullopt);
  EXPECT_EQ(lane_of_nccl_kernel(""), std::nullopt);
}

}  // namespace
}  // namespace shardscope::profile
