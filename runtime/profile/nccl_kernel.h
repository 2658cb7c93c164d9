// Which collective a kernel of NCCL runs, by its name.
#pragma once

#include <optional>
#include <string_view>

#include "instrumentation/event.h"

namespace shardscope::profile {

/// The lane of the GPU for a kernel of NCCL on a stream whose lane is not known: gpu_gather for all-gathers
/// and broadcasts, gpu_reduce for reductions. PyTorch runs both on one stream. nullopt for every other
/// kernel. Names as in NCCL 2.19 to 2.28: ncclDevKernel_AllGather_RING_LL,
/// ncclSymkDevKernel_ReduceScatter_LL_...
[[nodiscard]] std::optional<instrumentation::StreamId> lane_of_nccl_kernel(std::string_view name) noexcept;

}  // namespace shardscope::profile
