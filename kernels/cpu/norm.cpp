#include <algorithm>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/workspace.h"

namespace shardscope::kernels::cpu {

void layer_norm_forward(int threads, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon) {
  const VectorKernels& kernels = vector_kernels();
  // weight[C] and bias[C] as floats, in the calling thread's workspace; the other threads only read them.
  float* parameters = workspace_floats(Slot::parameters, 2 * C);
  kernels.cast(parameters, DType::f32, weight.data, weight.type, C);
  kernels.cast(parameters + C, DType::f32, bias.data, bias.type, C);
  // Rows are independent. A thread gets at least about 2^15 elements.
  parallel_ranges(threads, N, 1, 1 + (1 << 15) / std::max<std::int64_t>(C, 1),
                  [&](std::int64_t begin, std::int64_t end, int) {
                    float* row = workspace_floats(Slot::row, C);
                    kernels.layer_norm_forward(at(y.data, size_of(y.type), begin * C), y.type, mean + begin,
                                               rstd + begin, at(x.data, size_of(x.type), begin * C), x.type,
                                               parameters, parameters + C, end - begin, C, epsilon, row);
                  });
}

void layer_norm_backward(Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x, ConstPtr weight,
                         const float* mean, const float* rstd, std::int64_t N, std::int64_t C, Write write_dx,
                         Write write_params) {
  const VectorKernels& kernels = vector_kernels();
  // On the calling thread only: weight and bias gradients are summed over all rows, in one order.
  // `parameters` holds weight[C], then the sums for weight and for bias.
  float* scratch = workspace_floats(Slot::row, 5 * C);
  float* parameters = workspace_floats(Slot::parameters, 3 * C);
  float* weight_sums = parameters + C;
  float* bias_sums = parameters + 2 * C;
  kernels.cast(parameters, DType::f32, weight.data, weight.type, C);
  std::fill_n(weight_sums, 2 * C, 0.0F);
  kernels.layer_norm_backward(dx.data, dx.type, write_dx == Write::add, weight_sums, bias_sums, dy.data,
                              dy.type, x.data, x.type, parameters, mean, rstd, N, C, scratch);
  // Sums are fp32 whatever the gradient's type.
  const auto put = [&](Ptr to, const float* sums) {
    if (to.data == nullptr) return;
    // Rounded once, after all rows.
    if (write_params == Write::set) {
      kernels.cast(to.data, to.type, sums, DType::f32, C);
    } else {
      kernels.add(to.data, to.type, to.data, to.type, sums, DType::f32, C);
    }
  };
  put(dweight, weight_sums);
  put(dbias, bias_sums);
}

}  // namespace shardscope::kernels::cpu
