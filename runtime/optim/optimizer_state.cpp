#include "runtime/optim/optimizer_state.h"

namespace shardscope::optim {
namespace {

using instrumentation::MemoryCategory;

device::Buffer make_zeroed(device::Device& device, std::int64_t elems, MemoryCategory category) {
  device::Stream& stream = device.compute();
  device::Buffer buffer =
      device.memory().allocate(static_cast<std::size_t>(elems) * sizeof(float), {category}, stream);
  stream.run([data = buffer.data(), bytes = buffer.bytes()](const kernels::Exec& exec) {
    kernels::fill_zero(exec, data, bytes);
  });
  return buffer;
}

kernels::Ptr offset(kernels::Ptr base, std::int64_t elems) {
  return {static_cast<std::byte*>(base.data) + elems * static_cast<std::int64_t>(kernels::size_of(base.type)),
          base.type};
}

}  // namespace

OptimizerState::OptimizerState(device::Device& device, kernels::Ptr params, std::int64_t elems)
    : device_(device), params_(params), elems_(elems) {
  if (params.type != kernels::DType::f32) master_ = make_zeroed(device, elems, MemoryCategory::master_weight);
  momentum_ = make_zeroed(device, elems, MemoryCategory::momentum);
  variance_ = make_zeroed(device, elems, MemoryCategory::variance);
}

float* OptimizerState::master() const noexcept {
  return static_cast<float*>(master_ ? master_.data() : params_.data);
}

void OptimizerState::step(plan::Range range, kernels::ConstPtr gradient, const kernels::AdamW& settings) {
  const auto begin = range.begin;
  const kernels::ConstPtr grad{static_cast<const std::byte*>(gradient.data) +
                                   begin * static_cast<std::int64_t>(kernels::size_of(gradient.type)),
                               gradient.type};
  const kernels::Ptr rounded = master_ ? offset(params_, begin) : kernels::Ptr{nullptr, params_.type};
  device_.compute().run([master = master() + begin, m = momentum() + begin, v = variance() + begin, rounded,
                         grad, n = range.size(), settings](const kernels::Exec& exec) {
    kernels::adamw_step(exec, master, m, v, rounded, grad, n, settings);
  });
}

void OptimizerState::round_params() {
  if (!master_) return;
  device_.compute().run([params = params_, master = master(), n = elems_](const kernels::Exec& exec) {
    kernels::cast(exec, params, {master, kernels::DType::f32}, n);
  });
}

}  // namespace shardscope::optim
