// Ranks as threads of one process, each with its device and communicators: the same code as processes run.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/cuda/attach.h"
#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::testing {

struct RankOutcome {
  std::string error;  ///< what() of the exception the rank ended with; empty if none
};

/// Runs `body` as every rank of a world of threads. A rank that throws aborts the others, as main does. On
/// CUDA all ranks share the first GPU, and their collectives are staged through the host.
inline std::vector<RankOutcome> run_ranks(std::uint32_t size, const comm::WorldOptions& options,
                                          const std::function<void(comm::World&, device::Device&)>& body,
                                          kernels::Backend backend = kernels::Backend::cpu) {
  auto worlds = comm::make_thread_worlds(size, options);
  std::vector<RankOutcome> outcomes(size);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        const bool cuda = backend == kernels::Backend::cuda;
        const auto device =
            cuda ? device::make_cuda_device({}) : device::make_cpu_device(worlds[r]->region());
        if (cuda) {
          comm::attach_cuda(*worlds[r], *device, 0, comm::DeviceTransport::staged, options.timeout);
        }
        body(*worlds[r], *device);
        worlds[r]->set_adapter({});
      } catch (const std::exception& error) {
        outcomes[r].error = error.what();
        worlds[r]->fail(error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

}  // namespace shardscope::testing
