// The framework that trained, and which times its spans have.
#pragma once

#include <cstdint>
#include <string>

#include "instrumentation/run_tables.h"

namespace shardscope::store {

/// zero: this runtime, or none recorded.
enum class Framework : std::uint8_t { zero, deepspeed, fsdp2, ddp, fsdp1, megatron, colossalai };

/// The framework as the tables record it; zero where they record none.
[[nodiscard]] inline Framework framework_of(const instrumentation::RunTables& tables) {
  const std::string& name = tables.framework;
  if (name.starts_with("DeepSpeed")) return Framework::deepspeed;
  if (name.starts_with("FSDP2")) return Framework::fsdp2;
  if (name.starts_with("DistributedDataParallel") || name.starts_with("DDP")) return Framework::ddp;
  if (name.starts_with("FSDP1")) return Framework::fsdp1;
  if (name.starts_with("Megatron-Core")) return Framework::megatron;
  if (name.starts_with("Colossal-AI")) return Framework::colossalai;
  return Framework::zero;
}

/// Whether a run may have no spans of its modules: the optimizer's spans are then no measure of the
/// computation.
[[nodiscard]] inline bool may_lack_modules(Framework framework, std::int32_t stage) {
  if (framework == Framework::deepspeed) return stage < 3;
  return framework != Framework::zero && framework != Framework::fsdp2;
}
[[nodiscard]] inline bool may_lack_modules(const instrumentation::RunTables& tables) {
  return may_lack_modules(framework_of(tables), tables.stage);
}

/// Whether spans of phases, modules and collectives have host times of calls that queue work on a GPU: an
/// attached program sees calls return, not what the device does later. Only GPU records have device times.
[[nodiscard]] inline bool has_times_of_host(Framework framework, const std::string& device) {
  return framework != Framework::zero && device.starts_with("cuda");
}
[[nodiscard]] inline bool has_times_of_host(const instrumentation::RunTables& tables) {
  return has_times_of_host(framework_of(tables), tables.device);
}

}  // namespace shardscope::store
