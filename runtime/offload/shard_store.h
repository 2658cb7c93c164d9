// Stores this rank's stage-3 shards between uses: on the device, in host memory or on NVMe. A gather needs
// them in device memory; shards stored elsewhere are loaded first.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/device/device.h"
#include "runtime/optim/param_sink.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/shard_layout.h"

namespace shardscope::offload {

/// A shard to load to device memory: shard_elems elements, or plan::PackedShard::bytes() bytes.
struct ShardLoad {
  plan::ParamId param{};
  void* to = nullptr;
};

class ShardStore : public optim::ParamSink {
 public:
  /// Device memory of a shard that is stored there; null for one that has to be loaded. A quantized one
  /// is a plan::PackedShard, stored and loaded.
  [[nodiscard]] virtual void* at_rest(plan::ParamId param) const noexcept = 0;
  /// The shard is stored as int8 (plan::quantized_shards).
  [[nodiscard]] virtual bool quantized(plan::ParamId param) const noexcept = 0;
  /// The stream that owns the memory of gathered parameters, the destination of gathers: the one that first
  /// writes to it. The gather stream waits for it before a gather, and it waits for the last use before the
  /// memory is freed.
  [[nodiscard]] virtual device::Stream& destination() noexcept = 0;
  /// Queues loading shards, in this order, for work queued on destination() afterwards.
  virtual void load(std::span<const ShardLoad> loads) = 0;
  /// Queues reading shards from NVMe into host buffers, for a later load(). At most the number that
  /// plan::ShardSwap allows.
  virtual void read_ahead(std::span<const plan::ParamId> params) = 0;
  /// Drops shards read ahead: their values are about to change.
  virtual void forget() = 0;
  /// How shards on NVMe are read and written, for the log; empty if there are none.
  [[nodiscard]] virtual std::string describe_swap() const { return {}; }
};

/// All shards in one buffer of the device pool, initially zero, in the order of `layout`. `quantized` by
/// ParamId: those stored as int8, frozen ones only.
[[nodiscard]] std::unique_ptr<ShardStore> make_device_shards(device::Device& device, kernels::DType type,
                                                             const plan::ShardLayout& layout,
                                                             const std::vector<bool>& quantized);

/// Shards are stored as given by `places` (by ParamId): on the device, in host memory (pinned with
/// pin_memory), or in a swap file under offload_param.nvme_path, read through `buffers`. Initially zero.
/// `layout` must outlive the result. `quantized` as above, none on NVMe. Throws BackendError if memory or
/// disk is too small.
[[nodiscard]] std::unique_ptr<ShardStore> make_placed_shards(device::Device& device, kernels::DType type,
                                                             const plan::ShardLayout& layout,
                                                             const std::vector<plan::ShardPlace>& places,
                                                             const std::vector<bool>& quantized,
                                                             const plan::SwapBuffers& buffers,
                                                             const plan::ZeroConfig& zero);

}  // namespace shardscope::offload
