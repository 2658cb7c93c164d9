#include "kernels/ops.h"
#include "runtime/offload/shard_store.h"
#include "runtime/offload/transfer.h"

namespace shardscope::offload {
namespace {

class DeviceShards final : public ShardStore {
 public:
  DeviceShards(device::Device& device, kernels::DType type, const plan::ShardLayout& layout)
      : device_(device),
        type_(type),
        layout_(layout),
        buffer_(device.memory().allocate(bytes_of(layout.elems),
                                         {instrumentation::MemoryCategory::param_shard}, device.compute())) {
    device_.compute().run([data = buffer_.data(), bytes = buffer_.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }

  [[nodiscard]] kernels::Ptr in_place() noexcept override { return {buffer_.data(), type_}; }
  void put(plan::Range range, const void* from, std::uint32_t group) override {
    transfer(device_, instrumentation::TransferKind::host_to_device, at(range.begin), from,
             bytes_of(range.size()), {instrumentation::kNoId, group});
  }
  [[nodiscard]] void* at_rest(plan::ParamId param) const noexcept override {
    return at(layout_.shard_offset[plan::raw(param)]);
  }
  [[nodiscard]] device::Stream& landing() noexcept override { return device_.gather(); }
  void load(std::span<const ShardLoad>) override {}
  void read_ahead(std::span<const plan::ParamId>) override {}
  void forget() override {}

 private:
  [[nodiscard]] std::size_t bytes_of(std::int64_t elems) const noexcept {
    return static_cast<std::size_t>(elems) * kernels::size_of(type_);
  }
  [[nodiscard]] std::byte* at(std::int64_t elem) const noexcept {
    return static_cast<std::byte*>(buffer_.data()) + bytes_of(elem);
  }

  device::Device& device_;
  const kernels::DType type_;
  const plan::ShardLayout& layout_;
  device::Buffer buffer_;
};

}  // namespace

std::unique_ptr<ShardStore> make_device_shards(device::Device& device, kernels::DType type,
                                               const plan::ShardLayout& layout) {
  return std::make_unique<DeviceShards>(device, type, layout);
}

}  // namespace shardscope::offload
