#include "app/store/model_states.h"

namespace shardscope::store {

bool is_model_state(ev::MemoryCategory category, std::int32_t stage) noexcept {
  switch (category) {
    case ev::MemoryCategory::param_shard:
    case ev::MemoryCategory::param_secondary:
    case ev::MemoryCategory::grad_full:
    case ev::MemoryCategory::grad_shard:
    case ev::MemoryCategory::master_weight:
    case ev::MemoryCategory::momentum:
    case ev::MemoryCategory::variance:
      return true;
    case ev::MemoryCategory::param_gathered:
      return stage < 3;
    default:
      return false;
  }
}

std::int64_t model_state_bytes(const MemorySample& sample, std::int32_t stage) noexcept {
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < sample.bytes.size(); ++c) {
    if (is_model_state(static_cast<ev::MemoryCategory>(c), stage)) sum += sample.bytes[c];
  }
  return sum;
}

}  // namespace shardscope::store
