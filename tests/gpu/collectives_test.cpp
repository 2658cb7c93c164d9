// Collectives of device memory: staged through the host with several ranks on one GPU, NCCL with one.
#include "runtime/comm/cuda/attach.h"
#include "tests/gpu/collective_checks.h"
#include "tests/gpu/gpu.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::gpu {
namespace {

class CudaCollectives : public OnGpu {};

TEST_F(CudaCollectives, StagedThroughTheHost) {
  device.reset();
  for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
    for (const auto& outcome : testing::run_ranks(world, {}, check_all, kernels::Backend::cuda)) {
      EXPECT_EQ(outcome.error, "") << world;
    }
  }
}

TEST_F(CudaCollectives, NcclWithOneRank) {
  auto worlds = comm::make_thread_worlds(1, {});
  comm::attach_cuda(*worlds[0], *device, 0, comm::DeviceTransport::nccl, std::chrono::seconds(30));
  check_all(*worlds[0], *device);
  worlds[0]->set_adapter({});
}

TEST_F(CudaCollectives, NcclRefusesRanksThatShareAGpu) {
  device.reset();
  const auto outcomes = testing::run_ranks(2, {}, [](comm::World& world, device::Device&) {
    const auto own = device::make_cuda_device({});
    comm::attach_cuda(world, *own, 0, comm::DeviceTransport::nccl, std::chrono::seconds(5));
  });
  for (const auto& outcome : outcomes) EXPECT_THAT(outcome.error, ::testing::HasSubstr("share a GPU"));
}

}  // namespace
}  // namespace shardscope::gpu
