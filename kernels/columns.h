// Columns of a part of a row-major matrix, as it lies in a partition: what ZenFlow scores, and what it takes
// out of and puts back into shards. Contracts as in ops.h.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace shardscope::kernels {

/// `elems` elements in row-major order, the first of them in column `first_column` of `columns`.
struct MatrixPart {
  std::int64_t elems = 0;
  std::int64_t columns = 1;
  std::int64_t first_column = 0;
};

/// sums[columns] fp32 = sums of |x| over the elements of each column, added in row order: the same bits on
/// every instruction set.
void column_abs_sums(const Exec&, float* sums, ConstPtr x, const MatrixPart& part);
/// Elements of `part` in the `count` columns `chosen` (ascending, in host memory) as they come in it: how
/// many there are.
[[nodiscard]] std::int64_t elems_in_columns(const MatrixPart& part, const std::int32_t* chosen,
                                            std::int64_t count) noexcept;
/// dst[k] = the k-th of those elements of x; of one type. `chosen` lies where the backend's operands do: on
/// CUDA in device memory.
void take_columns(const Exec&, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count);
/// The reverse: x's k-th chosen element = src[k].
void put_columns(const Exec&, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count);

}  // namespace shardscope::kernels
