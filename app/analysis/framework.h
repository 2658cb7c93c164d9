// The training framework, where figures and advice depend on it: other frameworks have no ZeRO stage,
// DeepSpeed configuration or fetch trace.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/framework.h"
#include "instrumentation/run_tables.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {

using store::Framework;
using store::framework_of;
using store::has_times_of_host;

/// Whether parameters are fetched along a trace that the coordinator records: FSDP uses the order of its
/// groups.
[[nodiscard]] inline bool has_fetch_trace(Framework framework) {
  return framework == Framework::zero || framework == Framework::deepspeed;
}

/// Bytes per element of each model state. PyTorch's optimizers keep their states in the type of the weights
/// they update, which is that of the parameters where there are no master weights; a ZeRO optimizer has fp32
/// states.
[[nodiscard]] inline plan::StateBytes state_bytes_of(const instrumentation::RunTables& tables) {
  const Framework framework = framework_of(tables);
  const bool torch = framework != Framework::zero && framework != Framework::deepspeed;
  const std::int64_t moment = torch && tables.master_bytes == 0 ? std::int64_t{tables.param_bytes} : 4;
  return {tables.param_bytes, tables.grad_bytes, tables.master_bytes, moment, moment};
}

/// The name of the partitioning: "ZeRO-3", "FSDP2", "DDP", "Megatron-Core", "Colossal-AI ZeRO-2".
[[nodiscard]] inline std::string partitioning_name(Framework framework, std::int32_t stage) {
  switch (framework) {
    case Framework::fsdp2:
      return "FSDP2";
    case Framework::ddp:
      return "DDP";
    case Framework::fsdp1:
      return "FSDP1";
    case Framework::megatron:
      return stage == 0 ? "Megatron-Core" : "Megatron-Core, distributed optimizer";
    case Framework::colossalai:  // Colossal-AI's name for what it shards
      return "Colossal-AI ZeRO-" + std::to_string(stage);
    case Framework::zero:
    case Framework::deepspeed:
      break;
  }
  return "ZeRO-" + std::to_string(stage);
}
[[nodiscard]] inline std::string partitioning_name(const instrumentation::RunTables& tables) {
  return partitioning_name(framework_of(tables), tables.stage);
}

}  // namespace shardscope::analysis
