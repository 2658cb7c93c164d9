#include "runtime/engine/gather_path.h"

#include <stdexcept>
#include <utility>

#include "kernels/ops.h"
#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::advance;
using execution::Context;

namespace {

using plan::ParamId;

/// The communicators that the configuration needs; throws if they are missing.
const comm::ZeroCommunicators& gather_groups_of(const Context& context) {
  if (context.groups != nullptr) return *context.groups;
  throw std::invalid_argument(
      "the configuration asks for groups of ranks (ZeRO++ or MiCS), but the engine was given no "
      "communicators "
      "for them");
}

// MiCS holds one copy of the model in each shard group (P16); otherwise all ranks hold one.
comm::Communicator& primary_comm(const Context& context) {
  if (context.config.zero.mics_shard_size < 1) return context.gather_comm;
  return *gather_groups_of(context).shard_gather;
}

/// By ParamId: whether the secondary copy is int8 (P17, C11a).
std::vector<bool> int8_copies(const Context& context, const plan::Ownership& ownership) {
  std::vector<std::int64_t> elems;
  for (const plan::ParamPlan& param : context.model.params) elems.push_back(param.elems);
  return plan::quantized_copies(elems, plan::trainable_params(context.model), context.config.zero,
                                ownership.shard_world(), static_cast<std::int64_t>(context.element_bytes()));
}

}  // namespace

GatherPath::GatherPath(const Context& context, const plan::Ownership& ownership,
                       const std::vector<bool>& quantized)
    : context_(context),
      ownership_(ownership),
      quantized_(quantized),
      int8_copies_(int8_copies(context, ownership)),
      comm_(primary_comm(context)),
      secondary_(plan::trainable_params(context.model), context.config.zero),
      copies_(context.model.params.size()) {
  // Checked now, so that a missing communicator is reported before the run, not at its first backward.
  if (secondary_.enabled()) static_cast<void>(gather_groups_of(context));
}

// Belongs to the gather stream: freed at the end of a function, it is reused only by work queued on that
// stream later.
device::Buffer GatherPath::allocate(std::size_t bytes, ev::MemoryCategory category, std::uint32_t owner) {
  return context_.device.memory().allocate(bytes, {category, owner}, stream());
}

void GatherPath::gather(std::span<const Part> parts, comm::CollectiveLabel label) {
  const plan::ZeroConfig& zero = context_.config.zero;
  Parts from_copies;
  Parts rounded;
  Parts from_shards;
  // One gather may take three paths; each is at most one coalesced collective, or two with scales.
  // zero_traffic.cpp tests in the same order.
  for (Part part : parts) {
    part.packed = stored_quantized(part.param);
    if (source(part.param) == plan::GatherSource::secondary) {
      from_copies.push_back(part);
    } else if (part.packed || plan::quantizes_weight(zero, comm_.world(), part.persistence)) {
      rounded.push_back(part);
    } else {
      from_shards.push_back(part);
    }
  }
  // All ranks have the same flags and issue these in the same order: different orders would deadlock.
  if (!from_copies.empty()) gather_secondary(from_copies, label);
  if (!rounded.empty()) gather_quantized(comm_, rounded, 1, label);
  if (from_shards.empty()) return;
  if (zero.use_all_reduce_for_fetch_params) {
    gather_by_all_reduce(from_shards, label);
  } else if (context_.groups != nullptr && context_.groups->gather_inter) {
    gather_hierarchically(from_shards, label);
  } else {
    gather_plain(from_shards, label);
  }
}

// P13: one by one costs a launch and a rendezvous each, but shows each parameter separately.
void GatherPath::all_gather(comm::Communicator& comm, std::span<const comm::GatherPart> pieces,
                            kernels::DType type, comm::CollectiveLabel label) {
  if (!context_.config.zero.allgather_sequential) {
    comm.all_gather(pieces, type, stream(), label);
    return;
  }
  for (const comm::GatherPart& piece : pieces) comm.all_gather({&piece, 1}, type, stream(), label);
}

void GatherPath::gather_plain(const Parts& parts, comm::CollectiveLabel label) {
  const plan::ZeroConfig& zero = context_.config.zero;
  if (zero.compat.flat_gathers && parts.size() > 1 && comm_.world() > 1 && !zero.allgather_sequential) {
    gather_flat(parts, label);
    return;
  }
  std::vector<comm::GatherPart> pieces;
  pieces.reserve(parts.size());
  for (const Part& part : parts) {
    // In place if the shard is already inside the whole.
    pieces.push_back({part.shard, part.whole, shard_elems(part.param), plan::raw(part.param)});
  }
  all_gather(comm_, pieces, context_.type(), label);
}

/// deepspeed/runtime/zero/partition_parameters.py, _all_gather_dtype and AllGatherCoalescedHandle.
void GatherPath::gather_flat(const Parts& parts, comm::CollectiveLabel label) {
  // [world, row]: row r has rank r's shards of all parameters, one after the other. The shards of a parameter
  // are `row` elements apart, hence a copy of each.
  std::int64_t row = 0;
  for (const Part& part : parts) row += shard_elems(part.param);
  const std::size_t row_bytes = context_.bytes_of(row);
  // Freed at the end of this function, in the order of the gather stream: after the copies out of it.
  const device::Buffer flat =
      allocate(row_bytes * comm_.world(), ev::MemoryCategory::gather_buffer, ev::kNoId);
  auto* data = static_cast<std::byte*>(flat.data());
  // The all-gather is in place: this rank's row is at its final offset.
  std::byte* own = data + row_bytes * comm_.rank();
  std::size_t at = 0;
  for (const Part& part : parts) {
    const std::size_t bytes = context_.bytes_of(shard_elems(part.param));
    context_.device.copy_async(own + at, part.shard, bytes, stream());
    at += bytes;
  }
  const comm::GatherPart rows{own, data, row, ev::kNoId};
  comm_.all_gather({&rows, 1}, context_.type(), stream(), label);
  at = 0;
  for (const Part& part : parts) {
    const std::size_t bytes = context_.bytes_of(shard_elems(part.param));
    // `at` is the offset of the parameter in every row.
    for (std::uint32_t rank = 0; rank < comm_.world(); ++rank) {
      context_.device.copy_async(static_cast<std::byte*>(part.whole) + bytes * rank,
                                 data + row_bytes * rank + at, bytes, stream());
    }
    at += bytes;
  }
}

void GatherPath::gather_by_all_reduce(const Parts& parts, comm::CollectiveLabel label) {
  for (const Part& part : parts) {
    const std::int64_t elems = shard_elems(part.param) * comm_.world();
    const std::size_t shard_bytes = context_.bytes_of(shard_elems(part.param));
    auto* whole = static_cast<std::byte*>(part.whole);
    std::byte* place = whole + shard_bytes * comm_.rank();
    if (place != part.shard) context_.device.copy_async(place, part.shard, shard_bytes, stream());
    stream().run(
        [whole, place, shard_bytes, end = whole + context_.bytes_of(elems)](const kernels::Exec& exec) {
          kernels::fill_zero(exec, whole, static_cast<std::size_t>(place - whole));
          kernels::fill_zero(exec, place + shard_bytes, static_cast<std::size_t>(end - place) - shard_bytes);
        });
    // Factor 1: each element is summed with zeros only, so its value is unchanged.
    const comm::AllReducePart sum{part.whole, elems, plan::raw(part.param)};
    comm_.all_reduce({&sum, 1}, context_.type(), 1, stream(), label);
  }
}

void GatherPath::gather_hierarchically(const Parts& parts, comm::CollectiveLabel label) {
  comm::Communicator& between = *context_.groups->gather_inter;
  comm::Communicator& inside = *context_.groups->gather_intra;
  // One per parameter, [nodes, shard elems], alive until both hops are queued.
  std::vector<device::Buffer> chunks;
  std::vector<comm::GatherPart> first;
  std::vector<comm::GatherPart> second;
  for (const Part& part : parts) {
    const std::int64_t elems = shard_elems(part.param);
    const std::uint32_t param = plan::raw(part.param);
    // Rank l of a node collects chunk l of every node's range of the parameter.
    chunks.push_back(
        allocate(context_.bytes_of(elems * between.world()), ev::MemoryCategory::gather_buffer, param));
    first.push_back({part.shard, chunks.back().data(), elems, param});
    for (std::uint32_t node = 0; node < between.world(); ++node) {
      // Offset of the shard of this rank's peer on `node` in the result of the first hop.
      const std::size_t chunk = context_.bytes_of(elems * node);
      // Offset of that node's shards in the whole: its ranks are consecutive, so are their shards.
      const std::size_t range = context_.bytes_of(elems * inside.world() * node);
      second.push_back({static_cast<std::byte*>(chunks.back().data()) + chunk,
                        static_cast<std::byte*>(part.whole) + range, elems, param});
    }
  }
  // In this order: the second hop sends the result of the first.
  all_gather(between, first, context_.type(), label);
  all_gather(inside, second, context_.type(), label);
}

void GatherPath::gather_quantized(comm::Communicator& comm, const Parts& parts, std::int64_t shards,
                                  comm::CollectiveLabel label) {
  // Two per parameter, alive until dequantizing is queued: values [ranks * shards, elems] int8, then scales
  // [ranks * shards, groups] fp32, of the parameter's own shard.
  std::vector<device::Buffer> buffers;
  std::vector<comm::GatherPart> values;
  std::vector<comm::GatherPart> scales;
  std::vector<plan::PackedShard> packed;
  const auto ranks = static_cast<std::int64_t>(comm.world());
  for (const Part& part : parts) {
    const std::uint32_t param = plan::raw(part.param);
    packed.push_back(plan::packed_shard(shard_elems(part.param), shards));
    const plan::PackedShard& own = packed.back();
    // int8: an element is a byte.
    buffers.push_back(
        allocate(static_cast<std::size_t>(own.elems() * ranks), ev::MemoryCategory::quantization, param));
    auto* all_values = static_cast<std::int8_t*>(buffers.back().data());
    buffers.push_back(allocate(static_cast<std::size_t>(own.scales() * ranks) * sizeof(float),
                               ev::MemoryCategory::quantization, param));
    auto* all_scales = static_cast<float*>(buffers.back().data());
    // Values followed by scales: nothing to quantize or copy before sending.
    if (part.packed) {
      const auto* from = static_cast<const std::byte*>(part.shard);
      values.push_back({from, all_values, own.elems(), param});
      scales.push_back({from + own.scales_at(), all_scales, own.scales(), param});
      continue;
    }
    const plan::QuantGroups& g = own.groups;  // one shard: qwZ
    // Quantized directly to its offset in the gathered buffer.
    std::int8_t* own_values = all_values + g.elems * comm.rank();
    float* own_scales = all_scales + g.groups * comm.rank();
    stream().run([g, own_values, own_scales,
                  shard = kernels::ConstPtr(part.shard, context_.type())](const kernels::Exec& exec) {
      kernels::quantize_int8(exec, own_values, own_scales, shard, g.elems, g.group_elems);
    });
    values.push_back({own_values, all_values, g.elems, param});
    scales.push_back({own_scales, all_scales, g.groups, param});
  }
  // All parameters at once: two collectives, unless gathered one by one.
  all_gather(comm, values, kernels::DType::i8, label);
  all_gather(comm, scales, kernels::DType::f32, label);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // The own shard is dequantized too: it must have the rounded values that every other rank gets (P18).
    const kernels::Ptr whole{parts[i].whole, context_.type()};
    const auto* from = static_cast<const std::int8_t*>(values[i].full);
    const auto* scale = static_cast<const float*>(scales[i].full);
    stream().run([g = packed[i].groups, whole, from, scale, all = shards * ranks](const kernels::Exec& exec) {
      // Shard by shard: the last group of each may be short.
      for (std::int64_t shard = 0; shard < all; ++shard) {
        kernels::dequantize_int8(exec, advance(whole, g.elems * shard), from + g.elems * shard,
                                 scale + g.groups * shard, g.elems, g.group_elems);
      }
    });
  }
}

void GatherPath::gather_secondary(const Parts& parts, comm::CollectiveLabel label) {
  comm::Communicator& group = *context_.groups->secondary;
  std::vector<comm::GatherPart> pieces;
  Parts packed;
  for (Part part : parts) {
    // The caller's part has no shard: source() returned secondary.
    part.shard = copies_[plan::raw(part.param)].data();
    part.packed = int8_copies_[plan::raw(part.param)];
    if (part.packed) {
      packed.push_back(part);
      continue;
    }
    const std::int64_t elems =
        plan::secondary_elems(context_.elems_of(part.param), ownership_.shard_world(), group.world());
    pieces.push_back({part.shard, part.whole, elems, plan::raw(part.param)});
  }
  if (!pieces.empty()) all_gather(group, pieces, context_.type(), label);
  if (!packed.empty()) gather_quantized(group, packed, ownership_.shard_world() / group.world(), label);
}

// Called first: SecondaryShards records the pass, and returns true only if a copy must be made.
bool GatherPath::released(ParamId param, const void* whole) {
  if (!secondary_.released(param)) return false;
  const comm::Communicator& group = *context_.groups->secondary;
  const std::int64_t elems =
      plan::secondary_elems(context_.elems_of(param), ownership_.shard_world(), group.world());
  const std::size_t bytes = context_.bytes_of(elems);
  // The whole with its padding is divided into equal parts in the order of the group's ranks.
  const std::byte* part = static_cast<const std::byte*>(whole) + bytes * group.rank();
  device::Buffer& copy = copies_[plan::raw(param)];
  if (!int8_copies_[plan::raw(param)]) {
    copy = allocate(bytes, ev::MemoryCategory::param_secondary, plan::raw(param));
    context_.device.copy_async(copy.data(), part, bytes, stream());
    return true;
  }
  // In the groups of the primary shards, so that values already rounded to int8 are not changed by rounding
  // again (in 16 bits).
  const plan::PackedShard packed =
      plan::packed_secondary(context_.elems_of(param), ownership_.shard_world(), group.world());
  copy = allocate(static_cast<std::size_t>(packed.bytes()), ev::MemoryCategory::param_secondary,
                  plan::raw(param));
  auto* values = static_cast<std::int8_t*>(copy.data());
  auto* scales = reinterpret_cast<float*>(values + packed.scales_at());
  stream().run(
      [packed, values, scales, from = kernels::ConstPtr{part, context_.type()}](const kernels::Exec& exec) {
        const plan::QuantGroups& g = packed.groups;
        for (std::int64_t shard = 0; shard < packed.shards; ++shard) {
          kernels::quantize_int8(exec, values + g.elems * shard, scales + g.groups * shard,
                                 advance(from, g.elems * shard), g.elems, g.group_elems);
        }
      });
  return true;
}

// Freed in the order of the gather stream: after any queued gather from the copy.
std::vector<ParamId> GatherPath::weights_change(plan::WeightChange change) {
  std::vector<ParamId> ended = secondary_.weights_change(change);
  for (const ParamId param : ended) copies_[plan::raw(param)].reset();
  return ended;
}

}  // namespace shardscope::engine
