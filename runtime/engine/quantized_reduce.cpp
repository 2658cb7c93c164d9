#include "runtime/engine/quantized_reduce.h"

#include <stdexcept>
#include <utility>

#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::advance;
using execution::Context;
using execution::emit_host;

namespace {

const comm::ZeroCommunicators& reduce_groups_of(const Context& context) {
  if (context.groups != nullptr && context.groups->reduce_inter) return *context.groups;
  throw std::invalid_argument(
      "zero_quantized_gradients: the engine was given no communicators inside and between nodes");
}

}  // namespace

QuantizedReduce::QuantizedReduce(const Context& context)
    : context_(context),
      inside_(*reduce_groups_of(context).reduce_intra),
      between_(*reduce_groups_of(context).reduce_inter),
      topology_(reduce_groups_of(context).topology()),
      order_(plan::swizzle(topology_)),
      errors_(context.model.params.size()) {}

// The plan's decision, used by zero_traffic.cpp as well.
bool QuantizedReduce::takes(plan::ParamId param) const {
  return plan::gradient_path(context_.config.zero, topology_,
                             context_.model.params[plan::raw(param)].shape) == plan::GradientPath::quantized;
}

// Two values per byte: groups.elems is even, since elems % (2 * world) == 0 (P19).
std::uint8_t* QuantizedReduce::Values::values_at(std::int64_t index) const {
  return static_cast<std::uint8_t*>(values.data()) + index * groups.elems / 2;
}
float* QuantizedReduce::Values::scales_at(std::int64_t index) const {
  return static_cast<float*>(scales.data()) + index * groups.groups;
}
kernels::Int4Source QuantizedReduce::Values::slice(std::int64_t index) const {
  return {values_at(index), scales_at(index)};
}

QuantizedReduce::Values QuantizedReduce::allocate(const plan::QuantGroups& groups, std::int64_t slices,
                                                  std::uint32_t param) {
  const device::MemoryTag tag{ev::MemoryCategory::quantization, param};
  device::Arena& memory = context_.device.memory();
  Values result;
  result.groups = groups;
  result.values = memory.allocate(static_cast<std::size_t>(slices * groups.elems / 2), tag, stream());
  result.scales =
      memory.allocate(static_cast<std::size_t>(slices * groups.groups) * sizeof(float), tag, stream());
  return result;
}

kernels::ErrorFeedback QuantizedReduce::feedback(Error& error, const plan::QuantGroups& groups,
                                                 std::int64_t slices, std::int64_t index,
                                                 std::uint32_t param) {
  if (!context_.config.zero.loco) return {};
  // At the first reduction of this parameter, for all of its slices: initially zero.
  if (!error.values) {
    const device::MemoryTag tag{ev::MemoryCategory::quantization, param};
    device::Arena& memory = context_.device.memory();
    error.values = memory.allocate(static_cast<std::size_t>(slices * groups.elems), tag, stream());
    error.scales =
        memory.allocate(static_cast<std::size_t>(slices * groups.groups) * sizeof(float), tag, stream());
    for (const device::Buffer* buffer : {&error.values, &error.scales}) {
      stream().run([data = buffer->data(), bytes = buffer->bytes()](const kernels::Exec& exec) {
        kernels::fill_zero(exec, data, bytes);
      });
    }
  }
  // int8: one byte per element, unlike the int4 values that are sent.
  return {static_cast<std::int8_t*>(error.values.data()) + index * groups.elems,
          static_cast<float*>(error.scales.data()) + index * groups.groups,
          static_cast<float>(context_.config.zero.loco->err_beta)};
}

void QuantizedReduce::reduce(std::span<const Part> parts, float factor, comm::CollectiveLabel label) {
  std::vector<Travel> travels;
  travels.reserve(parts.size());
  for (const Part& part : parts) {
    // All parameters of a bucket together, so that each hop is two collectives, not two per parameter.
    Travel travel;
    travel.part = part;
    travel.groups =
        plan::gradient_groups(context_.model.params[plan::raw(part.param)].shape, topology_.world);
    travels.push_back(std::move(travel));
  }
  first_hop(travels, label);
  second_hop(travels, label);
  // One rounded partial sum of this rank's slice from every node. The mean is computed here, once, in full
  // precision.
  for (const Travel& travel : travels) {
    std::vector<kernels::Int4Source> sources;
    for (std::int64_t node = 0; node < topology_.nodes(); ++node) {
      sources.push_back(travel.second_in.slice(node));
    }
    // Captured by value: the vector of sources is destroyed before the stream runs this; the buffers are
    // freed after it in stream order.
    stream().run([sources, out = travel.part.out, g = travel.groups, factor](const kernels::Exec& exec) {
      kernels::dequantize_sum_int4(exec, out, sources.data(), static_cast<std::uint32_t>(sources.size()),
                                   g.elems, g.group_elems, factor);
    });
  }
}

/// Rounds every slice, in the order of plan::swizzle, and exchanges them inside the node. With one rank per
/// node there is no peer: the rounded values are exchanged between nodes directly.
void QuantizedReduce::first_hop(std::vector<Travel>& travels, comm::CollectiveLabel label) {
  const std::int64_t slices = topology_.world;
  for (Travel& travel : travels) {
    const std::uint32_t param = plan::raw(travel.part.param);
    const plan::QuantGroups& g = travel.groups;
    // [world slices]: the whole gradient in four bits.
    travel.first_out = allocate(g, slices, param);
    // order_ is [local rank][node]: slices of ranks with equal local rank are adjacent. Each rank of this
    // node is sent `nodes` consecutive slices.
    for (std::int64_t place = 0; place < slices; ++place) {
      const kernels::ConstPtr slice =
          advance(travel.part.gradient, g.elems * order_[static_cast<std::size_t>(place)]);
      stream().run(
          [slice, g, to = travel.first_out.values_at(place), scales = travel.first_out.scales_at(place),
           error = feedback(errors_[param].first, g, slices, place, param)](const kernels::Exec& exec) {
            kernels::quantize_int4(exec, to, scales, slice, g.elems, g.group_elems, error);
          });
    }
    if (inside_.world() > 1) travel.first_in = allocate(g, slices, param);
  }
  if (inside_.world() > 1) {
    exchange(inside_, travels, &Travel::first_out, &Travel::first_in, topology_.nodes(), label);
  }
}

/// Sums the slices received from the ranks of this node, rounds the sums and exchanges them between nodes.
void QuantizedReduce::second_hop(std::vector<Travel>& travels, comm::CollectiveLabel label) {
  const std::int64_t nodes = topology_.nodes();
  for (Travel& travel : travels) {
    const std::uint32_t param = plan::raw(travel.part.param);
    const plan::QuantGroups& g = travel.groups;
    // [nodes slices]: this rank's slice, once from each node.
    travel.second_in = allocate(g, nodes, param);
    if (inside_.world() == 1) {
      // Without a peer in the node there is nothing to sum or to round again.
      travel.second_out = std::move(travel.first_out);
      continue;
    }
    travel.second_out = allocate(g, nodes, param);
    // The sum over this node's ranks of the slice owned by the rank with this local rank on `node`.
    for (std::int64_t node = 0; node < nodes; ++node) {
      std::vector<kernels::Int4Source> sources;
      for (std::int64_t rank = 0; rank < inside_.world(); ++rank) {
        // first_in is [rank of the node][node]: the slices of each peer are contiguous.
        sources.push_back(travel.first_in.slice(rank * nodes + node));
      }
      stream().run(
          [sources, g, to = travel.second_out.values_at(node), scales = travel.second_out.scales_at(node),
           error = feedback(errors_[param].second, g, nodes, node, param)](const kernels::Exec& exec) {
            kernels::requantize_int4(exec, to, scales, sources.data(),
                                     static_cast<std::uint32_t>(sources.size()), g.elems, g.group_elems, 1,
                                     error);
          });
    }
  }
  exchange(between_, travels, &Travel::second_out, &Travel::second_in, 1, label);
}

void QuantizedReduce::exchange(comm::Communicator& comm, std::vector<Travel>& travels, Values Travel::*out,
                               Values Travel::*in, std::int64_t slices, comm::CollectiveLabel label) {
  std::vector<comm::AllToAllPart> values;
  std::vector<comm::AllToAllPart> scales;
  for (Travel& travel : travels) {
    const std::uint32_t param = plan::raw(travel.part.param);
    // In bytes: half of the elements. `packing` 2 means two elements per byte in events.
    values.push_back(
        {(travel.*out).values_at(0), (travel.*in).values_at(0), slices * travel.groups.elems / 2, param});
    scales.push_back(
        {(travel.*out).scales_at(0), (travel.*in).scales_at(0), slices * travel.groups.groups, param});
  }
  // Values before scales on every rank: collectives are matched in order of issue.
  comm.all_to_all(values, kernels::DType::i8, stream(), {label.group_id, 2});
  comm.all_to_all(scales, kernels::DType::f32, stream(), label);
}

void QuantizedReduce::end_step(std::uint32_t step) {
  // Skipped steps count as well: their gradients were rounded too.
  ++steps_;
  if (!context_.config.zero.loco || steps_ % context_.config.zero.loco->reset_t != 0) return;
  std::uint32_t params = 0;
  std::int64_t elems = 0;
  for (Errors& errors : errors_) {
    // Counts the parameter once for both hops.
    params += errors.first.values || errors.second.values ? 1 : 0;
    for (const Error* error : {&errors.first, &errors.second}) {
      if (!error->values) continue;
      elems += static_cast<std::int64_t>(error->values.bytes());  // one each
      // An error is its integer times the scale of its group.
      stream().run([data = error->scales.data(), bytes = error->scales.bytes()](const kernels::Exec& exec) {
        kernels::fill_zero(exec, data, bytes);
      });
    }
  }
  if (params > 0) emit_host<ev::EventKind::feedback_reset>({.step = step, .params = params, .elems = elems});
}

}  // namespace shardscope::engine
