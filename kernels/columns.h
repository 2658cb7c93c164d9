// Columns of a part of a row-major matrix, as stored in a partition: ZenFlow scores them, and gathers them
// from and scatters them into shards. Contracts as in ops.h.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace shardscope::kernels {

/// `elems` elements in row-major order; the first is in column `first_column` of `columns`.
struct MatrixPart {
  std::int64_t elems = 0;
  std::int64_t columns = 1;
  std::int64_t first_column = 0;
};

/// sums[columns] fp32 = sums of |x| over the elements of each column, added in row order: bitwise equal on
/// every instruction set.
void column_abs_sums(const Exec&, float* sums, ConstPtr x, const MatrixPart& part);
/// Number of elements of `part` in the `count` columns `chosen` (ascending, in host memory), in the order of
/// `part`.
[[nodiscard]] std::int64_t elems_in_columns(const MatrixPart& part, const std::int32_t* chosen,
                                            std::int64_t count) noexcept;
/// dst[k] = the k-th of these elements of x; both of one type. `chosen` is in the memory of the backend's
/// operands: device memory on CUDA.
void take_columns(const Exec&, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count);
/// The inverse: x's k-th chosen element = src[k].
void put_columns(const Exec&, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count);

}  // namespace shardscope::kernels
