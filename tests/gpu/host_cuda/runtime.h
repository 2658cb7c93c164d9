// A CUDA runtime of host threads, so that what the project does with CUDA's streams, events and memory can be
// tested where there is no GPU: programs that have it linked call it in place of libcudart. It keeps CUDA's
// rules where a program could break them without noticing on a CPU: device memory cannot be touched by the
// host, a copy from pageable memory reads it when it is queued, new memory holds garbage, kernels see no
// pageable memory, an error stays the thread's last until it is read.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>

namespace shardscope::host_cuda {

/// Compute capability of the device, major: Hopper's, like its other properties. Read when a context is made.
inline std::atomic<int> compute_capability = 9;
/// Queues what the kernel `name` (which lives as long as the process) does.
void launch(cudaStream_t stream, const char* name, std::function<void()> work, dim3 grid = {},
            dim3 block = {});
/// Where the device finds what the program means by `pointer`, which is device or pinned memory, or null.
/// Ends the program with a message for anything else. `what`: the kernel, for the message.
[[nodiscard]] void* seen_by_device(const void* pointer, const char* what);

}  // namespace shardscope::host_cuda
