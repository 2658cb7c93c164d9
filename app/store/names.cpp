#include "app/store/names.h"

#include <array>
#include <cstddef>

namespace shardscope::store {
namespace {

namespace ev = shardscope::instrumentation;

template <std::size_t N, typename E>
const char* pick(const std::array<const char*, N>& names, E value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "unknown";
}

}  // namespace

const char* name_of(ev::StreamId stream) noexcept {
  static constexpr std::array<const char*, ev::kStreamCount> kNames = {
      "host",        "compute",     "gather",     "reduce",     "copy",     "nvme",
      "worker",      "gpu_compute", "gpu_gather", "gpu_reduce", "gpu_copy", "gpu_other_1",
      "gpu_other_2", "gpu_other_3", "gpu_host",   "gpu_records"};
  return pick(kNames, stream);
}
const char* name_of(ev::MemoryPool pool) noexcept {
  static constexpr std::array<const char*, ev::kMemoryPoolCount> kNames = {"device", "host", "pinned",
                                                                           "nvme"};
  return pick(kNames, pool);
}
const char* name_of(ev::MemoryCategory category) noexcept {
  static constexpr std::array<const char*, ev::kMemoryCategoryCount> kNames = {
      "param_shard", "param_gathered", "param_secondary", "grad_full",     "grad_shard",  "master_weight",
      "momentum",    "variance",       "reduce_bucket",   "gather_buffer", "swap_buffer", "quantization",
      "activation",  "input",          "temporary",       "other"};
  return pick(kNames, category);
}
const char* name_of(ev::CollectiveOp op) noexcept {
  static constexpr std::array<const char*, 7> kNames = {
      "all_gather", "reduce_scatter", "reduce", "all_reduce", "broadcast", "barrier", "all_to_all"};
  return pick(kNames, op);
}
const char* name_of(ev::CollectiveScope scope) noexcept {
  static constexpr std::array<const char*, ev::kCollectiveScopeCount> kNames = {
      "world", "secondary", "shard", "replica", "intra_node", "inter_node"};
  return pick(kNames, scope);
}
const char* name_of(ev::Phase phase) noexcept {
  static constexpr std::array<const char*, 7> kNames = {
      "forward", "backward", "reduce", "optimizer", "gather", "checkpoint_save", "checkpoint_load"};
  return pick(kNames, phase);
}
const char* name_of(ev::Pass pass) noexcept {
  static constexpr std::array<const char*, 3> kNames = {"forward", "backward", "recompute"};
  return pick(kNames, pass);
}
const char* name_of(ev::StatusCause cause) noexcept {
  static constexpr std::array<const char*, 8> kNames = {"fetch",   "prefetch",  "persistent",   "external",
                                                        "release", "partition", "invalidation", "context"};
  return pick(kNames, cause);
}
const char* name_of(ev::Severity severity) noexcept {
  static constexpr std::array<const char*, 3> kNames = {"info", "warning", "error"};
  return pick(kNames, severity);
}
const char* name_of(ev::Detail detail) noexcept {
  static constexpr std::array<const char*, 5> kNames = {"steps", "phases", "modules", "params", "kernels"};
  return pick(kNames, detail);
}
const char* name_of(ev::TransferKind kind) noexcept {
  static constexpr std::array<const char*, 5> kNames = {"host_to_device", "device_to_host", "nvme_read",
                                                        "nvme_write", "input_to_device"};
  return pick(kNames, kind);
}
const char* name_of(ev::NcclAlgorithm algorithm) noexcept {
  static constexpr std::array<const char*, 8> kNames = {
      "unknown", "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  return pick(kNames, algorithm);
}
const char* name_of(ev::NcclProtocol protocol) noexcept {
  static constexpr std::array<const char*, 4> kNames = {"unknown", "ll", "ll128", "simple"};
  return pick(kNames, protocol);
}
const char* name_of(ev::GpuWork work) noexcept {
  static constexpr std::array<const char*, ev::kGpuWorkCount> kNames = {
      "kernel",       "host_to_device", "device_to_host", "device_to_device",
      "peer_to_peer", "other_copy",     "memset"};
  return pick(kNames, work);
}
const char* name_of(ev::GpuOwner owner) noexcept {
  static constexpr std::array<const char*, ev::kGpuOwnerCount> kNames = {
      "none", "forward", "backward", "recompute", "collective", "transfer", "optimizer", "phase"};
  return pick(kNames, owner);
}
const char* name_of(ev::GpuSync sync) noexcept {
  static constexpr std::array<const char*, 4> kNames = {"event", "stream_wait_event", "stream", "context"};
  return pick(kNames, sync);
}
const char* status_name(unsigned status) noexcept {
  static constexpr std::array<const char*, 3> kNames = {"not_available", "in_flight", "available"};
  return pick(kNames, status);
}

}  // namespace shardscope::store
