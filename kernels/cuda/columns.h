// The CUDA backend of kernels/columns.h, under the same contracts; `chosen` is device memory.
#pragma once

#include "kernels/columns.h"
#include "kernels/cuda/context.h"

namespace shardscope::kernels::cuda {

void column_abs_sums(const Context&, float* sums, ConstPtr x, const MatrixPart& part);
void take_columns(const Context&, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count);
void put_columns(const Context&, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count);

}  // namespace shardscope::kernels::cuda
