// Every collective of device memory against closed form, whatever moves the bytes.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::gpu {

/// As one rank of the world, on the device's reduce stream.
inline void check_all(comm::World& world, device::Device& device) {
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
  const comm::GatherPart gather{input.data(), output.data(), kShard, instrumentation::kNoId};
  comm->all_gather({&gather, 1}, kernels::DType::f32, device.reduce(), {});
  std::vector<float> got = read(output.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], held(static_cast<std::uint32_t>(i / kShard), i % kShard)) << "all_gather " << i;
  }
  // The last shard short: nothing behind it is read, the rest of it is zero.
  const std::int64_t elems = kShard * n - 10;
  const comm::ReduceScatterPart scatter{input.data(), elems, output.data(), kShard, instrumentation::kNoId};
  comm->reduce_scatter({&scatter, 1}, kernels::DType::f32, 0.5F, device.reduce(), {});
  got = read(output.data(), kShard);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t at = rank * kShard + i;
    ASSERT_NEAR(got[i], at < static_cast<std::size_t>(elems) ? summed(at) : 0, 1e-4)
        << "reduce_scatter " << i;
  }
  const comm::AllReducePart sum{input.data(), kShard * n, instrumentation::kNoId};
  comm->all_reduce({&sum, 1}, kernels::DType::f32, 0.5F, device.reduce(), {});
  got = read(input.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], summed(i), 1e-4) << "all_reduce " << i;

  load();
  const comm::ReducePart one{input.data(), output.data(), kShard * n, n - 1, instrumentation::kNoId};
  comm->reduce({&one, 1}, kernels::DType::f32, 0.5F, device.reduce(), {});
  if (rank == n - 1) {
    got = read(output.data(), kShard * n);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], summed(i), 1e-4) << "reduce " << i;
  }
  const comm::AllToAllPart swap{input.data(), output.data(), kShard, instrumentation::kNoId};
  comm->all_to_all({&swap, 1}, kernels::DType::f32, device.reduce(), {});
  got = read(output.data(), kShard * n);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto from = static_cast<std::uint32_t>(i / kShard);
    ASSERT_EQ(got[i], held(from, rank * kShard + i % kShard)) << "all_to_all " << i;
  }
}

}  // namespace shardscope::gpu
