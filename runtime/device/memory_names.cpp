#include "runtime/device/device.h"

namespace shardscope::device {

const char* name_of(instrumentation::MemoryCategory category) noexcept {
  using enum instrumentation::MemoryCategory;
  switch (category) {
    case param_shard:
      return "param_shard";
    case param_gathered:
      return "param_gathered";
    case param_secondary:
      return "param_secondary";
    case grad_full:
      return "grad_full";
    case grad_shard:
      return "grad_shard";
    case master_weight:
      return "master_weight";
    case momentum:
      return "momentum";
    case variance:
      return "variance";
    case reduce_bucket:
      return "reduce_bucket";
    case gather_buffer:
      return "gather_buffer";
    case swap_buffer:
      return "swap_buffer";
    case quantization:
      return "quantization";
    case activation:
      return "activation";
    case input:
      return "input";
    case temporary:
      return "temporary";
    case other:
      return "other";
  }
  return "unknown";
}

const char* name_of(instrumentation::MemoryPool pool) noexcept {
  using enum instrumentation::MemoryPool;
  switch (pool) {
    case device:
      return "device";
    case host:
      return "host";
    case pinned:
      return "pinned";
    case nvme:
      return "nvme";
  }
  return "unknown";
}

}  // namespace shardscope::device
