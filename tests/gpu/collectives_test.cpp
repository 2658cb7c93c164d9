// Collectives of device memory: staged through the host with several ranks on one GPU, NCCL with one.
#include "runtime/comm/cuda/attach.h"
#include "tests/device/thread_ranks.h"
#include "tests/gpu/gpu.h"

namespace shardscope::gpu {
namespace {

using instrumentation::kNoId;
using kernels::DType;

void check_all(comm::World& world, device::Device& device) {
  const auto comm = world.make_communicator("test");
  const std::uint32_t n = world.size();
  const std::uint32_t rank = world.rank();
  constexpr std::int64_t kShard = 1001;
  const auto floats = [](std::int64_t elems) { return static_cast<std::size_t>(elems) * sizeof(float); };
  std::vector<float> mine(static_cast<std::size_t>(kShard * n));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 97) / 7.0F;
  }
  // What rank r holds at i; sums below are taken in rank order as the contract says.
  const auto held = [](std::uint32_t r, std::size_t i) {
    return static_cast<float>(r + 1) * static_cast<float>(i % 97) / 7.0F;
  };
  const auto summed = [&](std::size_t i) {
    float sum = held(0, i);
    for (std::uint32_t r = 1; r < n; ++r) sum += held(r, i);
    return sum * 0.5F;
  };
  const auto read = [&](const void* from, std::int64_t elems) {
    std::vector<float> to(static_cast<std::size_t>(elems));
    device.copy_async(to.data(), from, floats(elems), device.reduce());
    device.reduce().synchronize();
    return to;
  };
  auto input = device.memory().allocate(floats(kShard * n), {}, device.reduce());
  auto output = device.memory().allocate(floats(kShard * n), {}, device.reduce());
  const auto load = [&] {
    device.copy_async(input.data(), mine.data(), floats(kShard * n), device.reduce());
  };

  load();
  const comm::GatherPart gather{input.data(), output.data(), kShard, kNoId};
  comm->all_gather({&gather, 1}, DType::f32, device.reduce(), {});
  std::vector<float> got = read(output.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], held(static_cast<std::uint32_t>(i / kShard), i % kShard)) << "all_gather " << i;
  }
  // The last shard short: nothing behind it is read, the rest of it is zero.
  const std::int64_t elems = kShard * n - 10;
  const comm::ReduceScatterPart scatter{input.data(), elems, output.data(), kShard, kNoId};
  comm->reduce_scatter({&scatter, 1}, DType::f32, 0.5F, device.reduce(), {});
  got = read(output.data(), kShard);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t at = rank * kShard + i;
    ASSERT_NEAR(got[i], at < static_cast<std::size_t>(elems) ? summed(at) : 0, 1e-4)
        << "reduce_scatter " << i;
  }
  const comm::AllReducePart sum{input.data(), kShard * n, kNoId};
  comm->all_reduce({&sum, 1}, DType::f32, 0.5F, device.reduce(), {});
  got = read(input.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], summed(i), 1e-4) << "all_reduce " << i;

  load();
  const comm::ReducePart one{input.data(), output.data(), kShard * n, n - 1, kNoId};
  comm->reduce({&one, 1}, DType::f32, 0.5F, device.reduce(), {});
  if (rank == n - 1) {
    got = read(output.data(), kShard * n);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], summed(i), 1e-4) << "reduce " << i;
  }
  const comm::AllToAllPart swap{input.data(), output.data(), kShard, kNoId};
  comm->all_to_all({&swap, 1}, DType::f32, device.reduce(), {});
  got = read(output.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto from = static_cast<std::uint32_t>(i / kShard);
    ASSERT_EQ(got[i], held(from, rank * kShard + i % kShard)) << "all_to_all " << i;
  }
}

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
