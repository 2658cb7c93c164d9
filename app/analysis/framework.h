// Which framework trained, as far as figures and advice depend on it: other frameworks have no ZeRO stage, no
// DeepSpeed configuration and no fetch trace.
#pragma once

#include "app/store/framework.h"
#include "instrumentation/run_tables.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {

using store::Framework;
using store::framework_of;
using store::has_times_of_host;

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
