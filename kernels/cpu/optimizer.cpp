#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {

void adamw_step(int threads, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings) {
  const AdamWScalars scalars = adamw_scalars(settings);
  // Element-wise: bits do not depend on the parts.
  parallel_ranges(threads, n, 1024, 1 << 16, [&](std::int64_t begin, std::int64_t end, int) {
    vector_kernels().adamw(master + begin, m + begin, v + begin,
                           param16.data == nullptr ? nullptr : at(param16.data, size_of(param16.type), begin),
                           param16.type, at(grad.data, size_of(grad.type), begin), grad.type, end - begin,
                           scalars);
  });
}

void squared_norm(double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  // On one thread: the order of the sum must not depend on `threads`.
  std::uint32_t found = 0;
  *sum += vector_kernels().squared_norm(&found, x.data, x.type, n);
  *bad |= found;
}

}  // namespace shardscope::kernels::cpu
