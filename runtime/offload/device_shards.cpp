#include "kernels/ops.h"
#include "runtime/offload/shard_store.h"
#include "runtime/offload/transfer.h"
#include "runtime/plan/quantization.h"

namespace shardscope::offload {
namespace {

class DeviceShards final : public ShardStore {
 public:
  DeviceShards(device::Device& device, kernels::DType type, const plan::ShardLayout& layout,
               const std::vector<bool>& quantized)
      : device_(device), type_(type), quantized_(quantized), starts_(layout.partitions.size()) {
    // Zeros, since padding between and after shards is gathered as well.
    buffer_ = device.memory().allocate(place(layout), {instrumentation::MemoryCategory::param_shard},
                                       device.compute());
    device_.compute().run([data = buffer_.data(), bytes = buffer_.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }

  [[nodiscard]] kernels::DType type() const noexcept override { return type_; }
  // The optimizer writes new values in place, where gathers read them.
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  [[nodiscard]] kernels::Ptr at(plan::Range range) override { return {byte_at(range.begin), type_}; }
  void put(plan::Range range, const void* from, std::uint32_t group) override {
    transfer(device_, instrumentation::TransferKind::host_to_device, byte_at(range.begin), from,
             bytes_of(range.size()), {instrumentation::kNoId, group});
  }
  [[nodiscard]] void* at_rest(plan::ParamId param) const noexcept override {
    return static_cast<std::byte*>(buffer_.data()) + starts_[plan::raw(param)];
  }
  [[nodiscard]] bool quantized(plan::ParamId param) const noexcept override {
    return quantized_[plan::raw(param)];
  }
  // Nothing is loaded, so the gather is the first to write to its destination.
  [[nodiscard]] device::Stream& destination() noexcept override { return device_.gather(); }
  void load(std::span<const ShardLoad>) override {}
  void read_ahead(std::span<const plan::ParamId>) override {}
  void forget() override {}

 private:
  /// Trained shards are laid out as in the owned range, followed by frozen ones. Returns the total bytes.
  /// starts_ in bytes: a quantized shard has no whole number of elements of type_.
  std::size_t place(const plan::ShardLayout& layout) {
    constexpr auto kUnit = static_cast<std::size_t>(plan::kShardAlignmentBytes);
    std::size_t end = bytes_of(layout.trainable_elems);
    for (const plan::ParamId id : layout.order) {
      const std::int64_t offset = layout.shard_offset[plan::raw(id)];
      // The same offsets as in the owned range, so at() needs no table.
      if (offset < layout.trainable_elems) {
        starts_[plan::raw(id)] = bytes_of(offset);
        continue;
      }
      const std::int64_t elems = layout.partitions[plan::raw(id)].shard_elems;
      // Each frozen shard begins at a multiple of kShardAlignmentBytes, whatever the packed size of the
      // previous one.
      end = (end + kUnit - 1) / kUnit * kUnit;
      starts_[plan::raw(id)] = end;
      end += quantized(id) ? static_cast<std::size_t>(plan::packed_shard(elems).bytes()) : bytes_of(elems);
    }
    return end;
  }
  [[nodiscard]] std::size_t bytes_of(std::int64_t elems) const noexcept {
    return static_cast<std::size_t>(elems) * kernels::size_of(type_);
  }
  [[nodiscard]] std::byte* byte_at(std::int64_t elem) const noexcept {
    return static_cast<std::byte*>(buffer_.data()) + bytes_of(elem);
  }

  device::Device& device_;
  const kernels::DType type_;
  const std::vector<bool> quantized_;  ///< by ParamId
  std::vector<std::size_t> starts_;    ///< by ParamId, bytes within the buffer
  /// Bytes: [trainable_elems] of type_, laid out as the owned range, then each frozen shard from its start
  /// on: [shard_elems] of type_, or where quantized int8 values and their fp32 scales (plan::PackedShard).
  device::Buffer buffer_;
};

}  // namespace

std::unique_ptr<ShardStore> make_device_shards(device::Device& device, kernels::DType type,
                                               const plan::ShardLayout& layout,
                                               const std::vector<bool>& quantized) {
  return std::make_unique<DeviceShards>(device, type, layout, quantized);
}

}  // namespace shardscope::offload
