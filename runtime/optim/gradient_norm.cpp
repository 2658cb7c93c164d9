#include "runtime/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops.h"

namespace shardscope::optim {

using instrumentation::MemoryCategory;

GradientNorm::GradientNorm(device::Device& device)
    : device_(device),
      result_(device.memory().allocate(sizeof(Result), {MemoryCategory::temporary}, device.compute())),
      copy_(device.pinned().allocate(sizeof(Result), {MemoryCategory::temporary}, device.compute())),
      copied_(device.make_event()) {}

void GradientNorm::queue(kernels::ConstPtr gradient, std::int64_t elems) {
  auto* result = static_cast<Result*>(result_.data());
  device::Stream& compute = device_.compute();
  compute.run([result, gradient, elems](const kernels::Exec& exec) {
    kernels::fill_zero(exec, result, sizeof(Result));
    kernels::squared_norm(exec, &result->sum, &result->bad, gradient, elems);
  });
  device_.copy_async(copy_.data(), result, sizeof(Result), compute);
  compute.record(*copied_);
}

GradientNorm::Local GradientNorm::read() {
  copied_->host_wait();
  const auto* result = static_cast<const Result*>(copy_.data());
  return {result->sum, result->bad == 0};
}

Clipping clip(double sum_of_squares, double scale, double limit) noexcept {
  Clipping result;
  result.norm = std::sqrt(sum_of_squares) / scale;
  const double excess = limit > 0 ? std::max(1.0, (result.norm + 1e-6) / limit) : 1.0;
  result.factor = 1.0 / (scale * excess);
  return result;
}

}  // namespace shardscope::optim
