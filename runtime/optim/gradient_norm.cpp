#include "runtime/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "runtime/execution/context.h"

namespace shardscope::optim {

using instrumentation::MemoryCategory;

GradientNorm::GradientNorm(device::Device& device)
    : device_(device),
      result_(device.memory().allocate(sizeof(Result), {MemoryCategory::temporary}, device.compute())),
      copy_(device.pinned().allocate(sizeof(Result), {MemoryCategory::temporary}, device.compute())),
      begin_(device.make_event()),
      copied_(device.make_event()),
      summed_(device.make_event()) {}

void GradientNorm::queue(const GradientParts& gradient) {
  auto* result = static_cast<Result*>(result_.data());
  device::Stream& compute = device_.compute();
  compute.run([result, part = gradient.device, elems = gradient.device_elems](const kernels::Exec& exec) {
    kernels::fill_zero(exec, result, sizeof(Result));
    if (elems > 0) kernels::squared_norm(exec, &result->sum, &result->bad, part, elems);
  });
  device_.copy_async(copy_.data(), result, sizeof(Result), compute);
  compute.record(*copied_);
  host_part_ = {};
  if (gradient.host_elems == 0) return;
  compute.record(*begin_);
  device::Stream& worker = device_.worker();
  worker.wait(*begin_);
  worker.run([this, part = gradient.host, elems = gradient.host_elems](const kernels::Exec& exec) {
    kernels::squared_norm(exec, &host_part_.sum, &host_part_.bad, part, elems);
  });
  worker.record(*summed_);
}

GradientNorm::Local GradientNorm::read() {
  copied_->host_wait();
  summed_->host_wait();
  const auto* result = static_cast<const Result*>(copy_.data());
  return {result->sum + host_part_.sum, result->bad == 0 && host_part_.bad == 0};
}

kernels::NotFiniteCount GradientNorm::count_not_finite(const GradientParts& gradient, plan::Range range) {
  // Reuses the memory of the result, which has been read.
  static_assert(sizeof(kernels::NotFiniteCount) <= sizeof(Result));
  kernels::NotFiniteCount total;
  if (const plan::Range part = plan::intersect(range, {0, gradient.device_elems}); part.size() > 0) {
    device::Stream& compute = device_.compute();
    auto* counts = static_cast<kernels::NotFiniteCount*>(result_.data());
    compute.run([counts, from = execution::advance(gradient.device, part.begin),
                 elems = part.size()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, counts, sizeof *counts);
      kernels::count_not_finite(exec, counts, from, elems);
    });
    device_.copy_async(copy_.data(), counts, sizeof *counts, compute);
    compute.record(*copied_);
    copied_->host_wait();
    total = *static_cast<const kernels::NotFiniteCount*>(copy_.data());
  }
  const std::int64_t before = gradient.device_elems;
  if (const plan::Range part = plan::intersect(range, {before, before + gradient.host_elems});
      part.size() > 0) {
    device::Stream& worker = device_.worker();
    worker.run([&total, from = execution::advance(gradient.host, part.begin - before), elems = part.size()](
                   const kernels::Exec& exec) { kernels::count_not_finite(exec, &total, from, elems); });
    worker.record(*summed_);
    summed_->host_wait();
  }
  return total;
}

Clipping clip(double sum_of_squares, double scale, double limit) noexcept {
  Clipping result;
  result.norm = std::sqrt(sum_of_squares) / scale;
  const double excess = limit > 0 ? std::max(1.0, (result.norm + 1e-6) / limit) : 1.0;
  result.factor = 1.0 / (scale * excess);
  result.clip_factor = 1.0 / excess;
  return result;
}

}  // namespace shardscope::optim
