// Which framework trained, as far as figures and advice depend on it: other frameworks have no ZeRO stage, no
// DeepSpeed configuration and no fetch trace.
#pragma once

#include <cstdint>
#include <string>

#include "instrumentation/run_tables.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {

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

/// Bytes of an element of each model state. Optimizers of PyTorch itself keep their states in the parameter's
/// type; a ZeRO optimizer has fp32 ones.
[[nodiscard]] inline plan::StateBytes state_bytes_of(const instrumentation::RunTables& tables) {
  const Framework framework = framework_of(tables);
  const bool torch = framework == Framework::fsdp2 || framework == Framework::ddp;
  const std::int64_t moment = torch && tables.master_bytes == 0 ? std::int64_t{tables.param_bytes} : 4;
  return {tables.param_bytes, tables.grad_bytes, tables.master_bytes, moment, moment};
}

/// How it splits the training: "ZeRO-3", "FSDP2", "DDP".
[[nodiscard]] inline std::string partitioning_name(Framework framework, std::int32_t stage) {
  if (framework == Framework::fsdp2) return "FSDP2";
  if (framework == Framework::ddp) return "DDP";
  return "ZeRO-" + std::to_string(stage);
}
[[nodiscard]] inline std::string partitioning_name(const instrumentation::RunTables& tables) {
  return partitioning_name(framework_of(tables), tables.stage);
}

}  // namespace shardscope::analysis
