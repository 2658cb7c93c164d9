#include "runtime/engine/stored_shards.h"

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"
#include "runtime/execution/events.h"

namespace shardscope::engine {

using plan::ParamId;

optim::StoredPart StoredShards::open(ParamId param) {
  // Another shard is opened: the last one is complete and can be quantized.
  if (unpacked_.param != param) finish();
  const optim::StoredPart part = open_stored(param);
  if (!shards_.quantized(param)) return part;
  // Opened again before finish(): returns the values set so far, not the stored ones.
  if (unpacked_.param != param) unpack(param, part);
  return {{unpacked_.values.data(), context_.type()}, part.stream};
}

void StoredShards::close(ParamId param, optim::PartUse use) {
  if (unpacked_.param != param) return close_stored(param, use);
  // Stored bytes do not change: the shard is quantized when all of it is set.
  unpacked_.changed |= use == optim::PartUse::changed;
  close_stored(param, optim::PartUse::read);
  // Only read: the memory is no longer needed.
  if (!unpacked_.changed) unpacked_ = {};
}

void StoredShards::finish() {
  if (unpacked_.param == plan::kNone<ParamId>) return;
  const ParamId param = unpacked_.param;
  // Opened as stored, in int8: the scales follow the values.
  const optim::StoredPart part = open_stored(param);
  auto* to = static_cast<std::byte*>(part.data.data);
  part.stream->run([from = kernels::ConstPtr{unpacked_.values.data(), context_.type()}, to,
                    shard = packed(param)](const kernels::Exec& exec) {
    kernels::quantize_int8(exec, reinterpret_cast<std::int8_t*>(to),
                           reinterpret_cast<float*>(to + shard.scales_at()), from, shard.groups.elems,
                           shard.groups.group_elems);
  });
  close_stored(param, optim::PartUse::changed);
  // After the kernel is queued: the memory is freed in the order of the stream that reads it.
  unpacked_ = {};
}

// In place if the store keeps its shards in device memory; otherwise it has to be opened for changes.
optim::StoredPart StoredShards::open_stored(ParamId param) {
  if (!shards_.in_place()) return shards_.open(param);
  return {{shards_.at_rest(param), context_.type()}, &context_.device.compute()};
}

void StoredShards::close_stored(ParamId param, optim::PartUse use) {
  if (!shards_.in_place()) shards_.close(param, use);
}

plan::PackedShard StoredShards::packed(ParamId param) const {
  return plan::packed_shard(ownership_.shards().partitions[plan::raw(param)].shard_elems);
}

void StoredShards::unpack(ParamId param, const optim::StoredPart& part) {
  // Memory of the same kind as the stored bytes: the unpacking kernel reads and writes both on one stream.
  const bool on_device = part.stream == &context_.device.compute();
  device::Arena& memory = on_device ? context_.device.memory() : context_.device.host();
  const plan::PackedShard shard = packed(param);
  unpacked_ = {param,
               memory.allocate(context_.bytes_of(shard.groups.elems),
                               {ev::MemoryCategory::temporary, ev::kNoId}, *part.stream),
               false};
  const auto* from = static_cast<const std::byte*>(part.data.data);
  part.stream->run(
      [to = kernels::Ptr{unpacked_.values.data(), context_.type()}, from, shard](const kernels::Exec& exec) {
        kernels::dequantize_int8(exec, to, reinterpret_cast<const std::int8_t*>(from),
                                 reinterpret_cast<const float*>(from + shard.scales_at()), shard.groups.elems,
                                 shard.groups.group_elems);
      });
}

}  // namespace shardscope::engine
