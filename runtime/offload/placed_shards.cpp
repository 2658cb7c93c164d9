// Shards stored partly outside the device (offload_param; docs/zero.md O1, P6).
//
// [Note: where a shard's bytes may be]
// A shard on NVMe is loaded for a gather in two hops: the nvme stream reads it into a host buffer, the copy
// stream copies it to the device. The buffer is free once it is copied: the nvme stream waits for that before
// it reads into it again. New values take the reverse path. All reads and writes of a shard run in order on
// the nvme stream, so a read never returns an older value.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "kernels/ops.h"
#include "runtime/execution/event_pool.h"
#include "runtime/offload/shard_store.h"
#include "runtime/offload/swap_space.h"
#include "runtime/offload/transfer.h"
#include "runtime/plan/quantization.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using plan::ParamId;
using plan::ShardPlace;

class PlacedShards final : public ShardStore {
 public:
  PlacedShards(device::Device& device, kernels::DType type, const plan::ShardLayout& layout,
               const std::vector<ShardPlace>& places, const std::vector<bool>& quantized,
               const plan::SwapBuffers& buffers, const plan::ZeroConfig& zero)
      : device_(device),
        events_(device),
        type_(type),
        layout_(layout),
        quantized_(quantized),
        pool_(host_pool(device, zero.offload_param.pin_memory)),
        shards_(places.size()) {
    place(places);
    if (buffers.count == 0) return;
    space_ = std::make_unique<SwapSpace>(device, zero.offload_param.nvme_path, zero.aio);
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (places[i] != ShardPlace::nvme) continue;
      shards_[i].on_nvme = space_->reserve(bytes_of(partition(i).shard_elems),
                                           {ev::MemoryCategory::param_shard, static_cast<std::uint32_t>(i)});
    }
    buffers_.resize(buffers.count);
    for (Slot& slot : buffers_) {
      slot.memory =
          IoBuffer(pool_, bytes_of(buffers.elems), {ev::MemoryCategory::swap_buffer}, device.nvme());
      slot.copied = device.make_event();
      slot.read = device.make_event();
    }
  }

  [[nodiscard]] kernels::DType type() const noexcept override { return type_; }
  [[nodiscard]] bool in_place() const noexcept override { return false; }
  [[nodiscard]] void* at_rest(ParamId param) const noexcept override {
    const Shard& shard = shards_[plan::raw(param)];
    return shard.place == ShardPlace::device ? shard.data : nullptr;
  }
  [[nodiscard]] bool quantized(ParamId param) const noexcept override { return quantized_[plan::raw(param)]; }
  [[nodiscard]] device::Stream& destination() noexcept override { return device_.copy(); }

  // `range` may cover parts of several shards, and a shard may come in several pieces.
  void put(plan::Range range, const void* from, std::uint32_t group) override {
    // Shards are in the owned range in the layout's order.
    const auto& offsets = layout_.shard_offset;
    auto next =
        std::upper_bound(layout_.order.begin(), layout_.order.end(), range.begin,
                         [&](std::int64_t at, ParamId param) { return at < offsets[plan::raw(param)]; });
    // upper_bound is one past the shard in which the range begins.
    for (--next; next != layout_.order.end() && offsets[plan::raw(*next)] < range.end; ++next) {
      const std::size_t param = plan::raw(*next);
      const std::int64_t begin = offsets[param];
      const plan::Range part = plan::intersect(range, {begin, begin + partition(param).shard_elems});
      if (part.size() == 0) continue;  // alignment between shards
      const auto* piece = static_cast<const std::byte*>(from) + bytes_of(part.begin - range.begin);
      put_part(param, part.begin - begin, part.size(), piece, group);
    }
  }

  // The part may be read and written on the returned stream, which depends on its memory and is ordered after
  // the copy stream and, for a shard on NVMe, after the read into its buffer.
  [[nodiscard]] optim::StoredPart open(ParamId param) override {
    const Shard& shard = shards_[plan::raw(param)];
    device::Stream& stream = shard.place == ShardPlace::device ? device_.compute() : device_.worker();
    events_.order(device_.copy(), stream);
    if (shard.place != ShardPlace::nvme) return {{shard.data, type_}, &stream};
    Slot* slot = holding(param);
    if (slot == nullptr) slot = &read(param);
    stream.wait(*slot->read);
    return {{slot->memory.data(), type_}, &stream};
  }

  // Later copies of the shard are ordered after the work on it.
  void close(ParamId param, optim::PartUse use) override {
    const ShardPlace place = shards_[plan::raw(param)].place;
    events_.order(place == ShardPlace::device ? device_.compute() : device_.worker(), device_.copy());
    if (place != ShardPlace::nvme) return;
    Slot& slot = *holding(param);
    if (use == optim::PartUse::changed) {
      write(param, slot, ev::kNoId);
    } else {
      give_back(slot);
    }
  }

  void load(std::span<const ShardLoad> loads) override {
    for (const ShardLoad& load : loads) {
      const Shard& shard = shards_[plan::raw(load.param)];
      const std::size_t bytes = shard_bytes(plan::raw(load.param));
      const TransferLabel label{plan::raw(load.param)};
      // One hop; the copy stream is also destination(), so no event is needed.
      if (shard.place == ShardPlace::host) {
        transfer(device_, ev::TransferKind::host_to_device, load.to, shard.data, bytes, label);
        continue;
      }
      Slot* slot = holding(load.param);
      if (slot == nullptr) slot = &read(load.param);
      device_.copy().wait(*slot->read);
      transfer(device_, ev::TransferKind::host_to_device, load.to, slot->memory.data(), bytes, label);
      give_back(*slot);
    }
  }

  // Shards already in a buffer, or being read, are not read again.
  void read_ahead(std::span<const ParamId> params) override {
    for (const ParamId param : params) {
      if (holding(param) == nullptr) (void)read(param);
    }
  }
  [[nodiscard]] std::string describe_swap() const override {
    if (!space_) return {};
    return "parameters on NVMe through " + std::to_string(buffers_.size()) +
           " buffers: " + space_->describe();
  }
  // A read still in flight does no harm: the next use of the buffer is ordered after it, a read by the nvme
  // stream's order, a copy by `read`.
  void forget() override {
    for (Slot& slot : buffers_) slot.param.reset();
  }

 private:
  struct Shard {
    ShardPlace place = ShardPlace::device;
    void* data = nullptr;    ///< [shard elements] of type_, on the device or the host; null on NVMe
    device::Buffer on_nvme;  ///< the same as a range of the swap file, in whole blocks
  };
  /// A host buffer for one shard on NVMe.
  struct Slot {
    IoBuffer memory;
    std::optional<ParamId> param;           ///< whose shard it contains or is reading; empty: free
    std::unique_ptr<device::Event> copied;  ///< recorded on the copy stream: the slot may be reused
    std::unique_ptr<device::Event> read;    ///< recorded on the nvme stream: the shard has been read
  };

  [[nodiscard]] std::size_t bytes_of(std::int64_t elems) const noexcept {
    return static_cast<std::size_t>(elems) * kernels::size_of(type_);
  }
  [[nodiscard]] const plan::ParamPartition& partition(std::size_t param) const {
    return layout_.partitions[param];
  }

  /// Bytes of a shard as stored.
  [[nodiscard]] std::size_t shard_bytes(std::size_t param) const {
    const std::int64_t elems = partition(param).shard_elems;
    return quantized_[param] ? static_cast<std::size_t>(plan::packed_shard(elems).bytes()) : bytes_of(elems);
  }

  /// Shards on the device and on the host: one buffer each, every shard at a vector-aligned offset.
  void place(const std::vector<ShardPlace>& places) {
    std::size_t on_device = 0;
    std::size_t on_host = 0;
    const auto take = [&](std::size_t& used, std::size_t param) {
      const auto unit = static_cast<std::size_t>(plan::kShardAlignmentBytes);
      return std::exchange(used, used + (shard_bytes(param) + unit - 1) / unit * unit);
    };
    std::vector<std::size_t> offset(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      shards_[i].place = places[i];
      if (places[i] == ShardPlace::device) offset[i] = take(on_device, i);
      if (places[i] == ShardPlace::host) offset[i] = take(on_host, i);
    }
    const device::MemoryTag tag{ev::MemoryCategory::param_shard};
    device_shards_ = device_.memory().allocate(on_device, tag, device_.copy());
    host_shards_ = pool_.allocate(on_host, tag, device_.copy());
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == ShardPlace::nvme) continue;
      const device::Buffer& buffer = places[i] == ShardPlace::device ? device_shards_ : host_shards_;
      shards_[i].data = static_cast<std::byte*>(buffer.data()) + offset[i];
    }
    // Padding is gathered too; it is always zero.
    for (const auto& [buffer, stream] :
         {std::pair{&device_shards_, &device_.copy()}, std::pair{&host_shards_, &device_.worker()}}) {
      if (!*buffer) continue;
      stream->run([data = buffer->data(), bytes = buffer->bytes()](const kernels::Exec& exec) {
        kernels::fill_zero(exec, data, bytes);
      });
    }
    events_.order(device_.worker(), device_.copy());
  }

  void put_part(std::size_t param, std::int64_t first, std::int64_t elems, const void* from,
                std::uint32_t group) {
    const Shard& shard = shards_[param];
    const auto id = static_cast<ParamId>(param);
    if (shard.place != ShardPlace::nvme) {
      // The kind follows the destination: values for the host come from the device or, updated there, from
      // the host.
      const auto kind = shard.place == ShardPlace::device ? ev::TransferKind::host_to_device
                                                          : ev::TransferKind::device_to_host;
      transfer(device_, kind, static_cast<std::byte*>(shard.data) + bytes_of(first), from, bytes_of(elems),
               {plan::raw(id), group});
      return;
    }
    // Pieces of a shard arrive in order; it is written to the file once it is complete.
    Slot* slot = holding(id);
    if (slot == nullptr) {
      slot = &take_slot(id);
      device_.copy().wait(*slot->read);  // for an earlier read into it
    }
    device_.copy_async(slot->memory.data() + bytes_of(first), from, bytes_of(elems), device_.copy());
    if (first + elems < partition(param).shard_elems) return;
    write(id, *slot, group);
  }

  /// Queues writing a slot to the file after the work queued on the copy stream.
  void write(ParamId param, Slot& slot, std::uint32_t group) {
    device_.copy().record(*slot.copied);
    device_.nvme().wait(*slot.copied);
    space_->queue(IoDirection::write, {part_of(param, slot)}, {plan::raw(param), group}, in_use());
    // Free for the next read, ordered after the write on the nvme stream; a copy into it waits for `read`.
    device_.nvme().record(*slot.read);
    slot.param.reset();
  }

  [[nodiscard]] Slot* holding(ParamId param) noexcept {
    const auto found =
        std::find_if(buffers_.begin(), buffers_.end(), [&](const Slot& slot) { return slot.param == param; });
    return found == buffers_.end() ? nullptr : &*found;
  }

  /// The buffer that has been free longest. An empty `param` is the host's view: queued transfers may still
  /// use the buffer, so its next user waits for `copied` or `read`.
  Slot& take_slot(ParamId param) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      Slot& slot = buffers_[(next_ + i) % buffers_.size()];
      if (slot.param) continue;
      next_ = (next_ + i + 1) % buffers_.size();
      slot.param = param;
      return slot;
    }
    throw std::logic_error("all " + std::to_string(buffers_.size()) +
                           " buffers of offload_param hold shards that were read ahead; the plan leaves one");
  }
  void give_back(Slot& slot) {
    device_.copy().record(*slot.copied);
    slot.param.reset();
  }

  // `copied` was recorded after the last copy out of this buffer; if never recorded, the wait returns at
  // once.
  Slot& read(ParamId param) {
    Slot& slot = take_slot(param);
    device_.nvme().wait(*slot.copied);
    space_->queue(IoDirection::read, {part_of(param, slot)}, {plan::raw(param)}, in_use());
    device_.nvme().record(*slot.read);
    return slot;
  }

  [[nodiscard]] IoPart part_of(ParamId param, const Slot& slot) const {
    const device::Buffer& place = shards_[plan::raw(param)].on_nvme;
    return {SwapSpace::position(place), slot.memory.data(), io_round(place.bytes())};
  }
  [[nodiscard]] std::int64_t in_use() const noexcept {
    return std::count_if(buffers_.begin(), buffers_.end(),
                         [](const Slot& slot) { return slot.param.has_value(); });
  }

  device::Device& device_;
  execution::EventPool events_;
  const kernels::DType type_;
  const plan::ShardLayout& layout_;
  const std::vector<bool> quantized_;  ///< by ParamId
  device::Arena& pool_;
  std::unique_ptr<SwapSpace> space_;            ///< null when nothing is on NVMe; outlives the places in it
  std::vector<Shard> shards_;                   ///< by ParamId
  device::Buffer device_shards_, host_shards_;  ///< of the copy stream
  std::vector<Slot> buffers_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<ShardStore> make_placed_shards(device::Device& device, kernels::DType type,
                                               const plan::ShardLayout& layout,
                                               const std::vector<ShardPlace>& places,
                                               const std::vector<bool>& quantized,
                                               const plan::SwapBuffers& buffers,
                                               const plan::ZeroConfig& zero) {
  return std::make_unique<PlacedShards>(device, type, layout, places, quantized, buffers, zero);
}

}  // namespace shardscope::offload
