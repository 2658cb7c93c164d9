#include "app/analysis/outside_memory.h"

#include "instrumentation/event_fields.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;

std::optional<OutsidePeak> outside_peak(const store::Store& store, std::uint32_t rank) {
  std::optional<OutsidePeak> most;
  for (const ev::Event& event : store.instants_of(rank, ev::EventKind::outside_memory)) {
    const auto sample = ev::as<ev::EventKind::outside_memory>(event);
    if (sample.pool != ev::MemoryPool::device || (most && sample.bytes <= most->bytes)) continue;
    most = OutsidePeak{sample.bytes, sample.bytes_in_use, static_cast<std::int64_t>(event.ticks)};
  }
  return most;
}

const char* outside_contents(Framework kind, const std::string& framework, const std::string& device) {
  const bool cuda = device.starts_with("cuda");
  if (kind == Framework::zero) {
    if (!framework.empty()) return "what that program does not count itself";
    return "CUDA's context and kernels, NCCL and other libraries, other processes on that device";
  }
  if (cuda) {
    return "CUDA's context and kernels, NCCL, what goes past PyTorch's allocator, other processes on that "
           "device";
  }
  return "of the process, what is in no category: Python, libraries, data, activations";
}

}  // namespace shardscope::analysis
