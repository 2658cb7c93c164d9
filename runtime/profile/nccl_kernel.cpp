#include "runtime/profile/nccl_kernel.h"

namespace shardscope::profile {

std::optional<instrumentation::StreamId> lane_of_nccl_kernel(std::string_view name) noexcept {
  using instrumentation::StreamId;
  constexpr std::string_view kKernel = "Kernel_";
  if (!name.starts_with("nccl")) return std::nullopt;
  const std::size_t at = name.find(kKernel);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view operation = name.substr(at + kKernel.size());
  if (operation.starts_with("AllGather") || operation.starts_with("Broadcast")) return StreamId::gpu_gather;
  if (operation.starts_with("ReduceScatter") || operation.starts_with("AllReduce") ||
      operation.starts_with("Reduce"))
    return StreamId::gpu_reduce;
  return std::nullopt;
}

}  // namespace shardscope::profile
