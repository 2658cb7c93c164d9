// Which framework trained, and whose times its spans are.
#pragma once

#include <cstdint>
#include <string>

#include "instrumentation/run_tables.h"

namespace shardscope::store {

/// zero: this runtime, or not given; other: FSDP1, Megatron-Core, Colossal-AI.
enum class Framework : std::uint8_t { zero, deepspeed, fsdp2, ddp, other };

/// By its own name; a run that names none is of this runtime.
[[nodiscard]] inline Framework framework_of(const instrumentation::RunTables& tables) {
  const std::string& name = tables.framework;
  if (name.starts_with("DeepSpeed")) return Framework::deepspeed;
  if (name.starts_with("FSDP2")) return Framework::fsdp2;
  if (name.starts_with("DistributedDataParallel") || name.starts_with("DDP")) return Framework::ddp;
  if (name.starts_with("FSDP1") || name.starts_with("Megatron-Core") || name.starts_with("Colossal-AI"))
    return Framework::other;
  return Framework::zero;
}

/// Whether spans of phases, modules and collectives are those of the host that queues the work of a GPU: a
/// program that attaches sees calls return, not what the device does later. Only records of the GPU say that.
[[nodiscard]] inline bool has_times_of_host(Framework framework, const std::string& device) {
  return framework != Framework::zero && device.starts_with("cuda");
}
[[nodiscard]] inline bool has_times_of_host(const instrumentation::RunTables& tables) {
  return has_times_of_host(framework_of(tables), tables.device);
}

/// Whether its compute stream may have nothing but phases and the optimizer: then what was computed in a step
/// without a module is not known.
[[nodiscard]] inline bool may_lack_modules(const instrumentation::RunTables& tables) {
  const Framework framework = framework_of(tables);
  return framework == Framework::ddp || framework == Framework::other ||
         (framework == Framework::deepspeed && tables.stage < 3);
}

}  // namespace shardscope::store
