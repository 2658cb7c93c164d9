// Kernels on the host: a block's threads are fibers of the stream's thread. Whatever a warp or a block does
// together (shuffles, matrix products, barriers) waits for all of its threads, and what a GPU would be
// undefined for ends the program with a message: a thread that does not come, shared memory beyond the
// launch. Every other launch runs its threads, warps and blocks backwards, so that results must not depend on
// order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace shardscope::host_cuda {

/// The launch parameters between <<< and >>>.
struct Launch {
  Launch(dim3 blocks, dim3 threads, std::size_t bytes, cudaStream_t on)
      : grid(blocks), block(threads), shared_bytes(bytes), stream(on) {}
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
/// Queues a kernel; `body` is its call by one thread. `function`: its address where it asks for shared
/// memory.
void launch_kernel(const Launch& launch, const void* function, const char* name, std::function<void()> body);

/// Of the thread that runs.
struct Indices {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
[[nodiscard]] const Indices& indices();
[[nodiscard]] void* dynamic_shared_memory();
/// Waits for all threads of the block that have not ended; true if `vote` was of any of them.
bool block_barrier(bool vote);

constexpr int kWordsOfLane = 6;
struct LaneWords {
  std::uint64_t word[kWordsOfLane];
};
/// Waits for all 32 lanes of the warp, each with its words; gives those of all. Stays valid until the warp's
/// next but one.
const LaneWords* warp_exchange(const LaneWords& mine);
/// Lane of the thread that runs.
[[nodiscard]] unsigned lane();
/// Number of the thread in its block.
[[nodiscard]] unsigned thread_number();
constexpr unsigned kMostThreads = 1024;
[[noreturn]] void undefined(const char* what);

}  // namespace shardscope::host_cuda
