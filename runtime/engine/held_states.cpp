#include "runtime/engine/held_states.h"

#include <stdexcept>

#include "kernels/ops.h"
#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::advance;
using execution::bytes_of;
using execution::Context;

namespace {

/// Temporary fp32 buffer for the copy of a part in device memory.
device::Buffer staging(const Context& context, std::int64_t elems) {
  return context.device.memory().allocate(bytes_of(elems, kernels::DType::f32),
                                          {ev::MemoryCategory::temporary, ev::kNoId},
                                          context.device.compute());
}

}  // namespace

// A frozen parameter has one slice on each rank: whole below stage 3, its shard in stage 3.
std::int64_t HeldStates::first_elem(plan::ParamId param) const {
  return ownership_.slices(param, context_.rank()).front().owned_offset;
}

void HeldStates::check(base::StateKind kind, plan::ParamId param) const {
  if (kind == base::StateKind::master) return;
  throw std::logic_error("parameter " + context_.model.params[plan::raw(param)].name +
                         " is frozen: it has weights and no other state");
}

void HeldStates::read(base::StateKind kind, plan::ParamId param, plan::Range range, float* to) {
  // Frozen weights are numbered after the owned range; the optimizer does not have them.
  if (!ownership_.frozen_at(range.begin)) return optimizer_.read(kind, range, to);
  check(kind, param);
  const std::int64_t elems = range.size();
  const optim::StoredPart part = parameters_.open_frozen(param);
  // `range` is relative to the begin of the owned range, the stored part to the parameter's slice.
  const kernels::ConstPtr from = advance(kernels::ConstPtr(part.data), range.begin - first_elem(param));
  const auto cast = [elems](device::Stream& stream, kernels::Ptr into, kernels::ConstPtr what) {
    stream.run([into, what, elems](const kernels::Exec& exec) { kernels::cast(exec, into, what, elems); });
  };
  device::Buffer beside;  // [elems] fp32, if the part is in device memory
  if (part.stream == &context_.device.compute()) {
    beside = staging(context_, elems);
    cast(*part.stream, {beside.data(), kernels::DType::f32}, from);
    context_.device.copy_async(to, beside.data(), beside.bytes(), *part.stream);
  } else {
    cast(*part.stream, {to, kernels::DType::f32}, from);
  }
  // The kernel is queued on the part's stream, before the close.
  parameters_.close_frozen(param, optim::PartUse::read);
  // `to` is the caller's memory, which must be filled when this returns; `beside` is still alive here.
  part.stream->synchronize();
}

void HeldStates::write(base::StateKind kind, plan::ParamId param, plan::Range range, const float* from) {
  if (!ownership_.frozen_at(range.begin)) return optimizer_.write(kind, range, from);
  check(kind, param);
  const std::int64_t elems = range.size();
  const optim::StoredPart part = parameters_.open_frozen(param);
  const kernels::Ptr to = advance(part.data, range.begin - first_elem(param));
  device::Buffer beside;  // [elems] fp32, if the part is in device memory
  kernels::ConstPtr what{from, kernels::DType::f32};
  if (part.stream == &context_.device.compute()) {
    beside = staging(context_, elems);
    context_.device.copy_async(beside.data(), from, beside.bytes(), *part.stream);
    what.data = beside.data();
  }
  part.stream->run([to, what, elems](const kernels::Exec& exec) { kernels::cast(exec, to, what, elems); });
  parameters_.close_frozen(param, optim::PartUse::changed);
  // `from` may be changed as soon as this returns.
  part.stream->synchronize();
}

}  // namespace shardscope::engine
