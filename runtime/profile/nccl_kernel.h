// Which collective a kernel of NCCL runs, by its name.
#pragma once

#include <optional>
#include <string_view>

#include "instrumentation/event.h"

namespace shardscope::profile {

/// The lane of the GPU for a kernel of NCCL on a stream whose lane is not known: all-gathers and broadcasts
/// go to gpu_gather, what reduces to gpu_reduce. A stream of PyTorch's runs both. Nothing for every other
/// kernel. Names as NCCL 2.19 to 2.28 makes them: ncclDevKernel_AllGather_RING_LL,
/// ncclSymkDevKernel_ReduceScatter_LL_...
[[nodiscard]] std::optional<instrumentation::StreamId> lane_of_nccl_kernel(std::string_view name) noexcept;

}  // namespace shardscope::profile
