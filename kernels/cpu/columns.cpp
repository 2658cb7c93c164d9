#include <algorithm>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {
namespace {

/// Calls visit(offset of the element, its index k) for every element in a chosen column.
template <class Visit>
void for_chosen(const MatrixPart& part, const std::int32_t* chosen, std::int64_t count, const Visit& visit) {
  // `row` is the offset of the row's column 0; it is negative if the first row is incomplete.
  std::int64_t number = 0;
  for (std::int64_t row = -part.first_column; row < part.elems; row += part.columns) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = row + chosen[i];
      if (at >= 0 && at < part.elems) visit(at, number++);
    }
  }
}

// Elements are copied as bits: f16 and bf16 as 16-bit integers.
template <class Element>
void take(Element* dst, const Element* x, const MatrixPart& part, const std::int32_t* chosen,
          std::int64_t count) {
  for_chosen(part, chosen, count, [&](std::int64_t at, std::int64_t number) { dst[number] = x[at]; });
}
template <class Element>
void put(Element* x, const Element* src, const MatrixPart& part, const std::int32_t* chosen,
         std::int64_t count) {
  for_chosen(part, chosen, count, [&](std::int64_t at, std::int64_t number) { x[at] = src[number]; });
}

}  // namespace

void column_abs_sums(int threads, float* sums, ConstPtr x, const MatrixPart& part) {
  // Parallel over columns, so that every sum keeps its order. Units of 64 columns: no two threads write one
  // cache line of `sums` if it is aligned.
  parallel_ranges(threads, part.columns, 64, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    std::fill(sums + begin, sums + end, 0.0F);
    for (std::int64_t row = -part.first_column; row < part.elems; row += part.columns) {
      // Columns of this row that are in the part: the first and the last row may be incomplete.
      const std::int64_t from = std::max<std::int64_t>(row + begin, 0);
      const std::int64_t to = std::min(row + end, part.elems);
      if (from >= to) continue;
      vector_kernels().add_abs(sums + (from - row), at(x.data, size_of(x.type), from), x.type, to - from);
    }
  });
}

void take_columns(Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count) {
  if (x.type == DType::f32) {
    take(static_cast<float*>(dst.data), static_cast<const float*>(x.data), part, chosen, count);
  } else {
    take(static_cast<std::uint16_t*>(dst.data), static_cast<const std::uint16_t*>(x.data), part, chosen,
         count);
  }
}

void put_columns(Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count) {
  if (x.type == DType::f32) {
    put(static_cast<float*>(x.data), static_cast<const float*>(src.data), part, chosen, count);
  } else {
    put(static_cast<std::uint16_t*>(x.data), static_cast<const std::uint16_t*>(src.data), part, chosen,
        count);
  }
}

}  // namespace shardscope::kernels::cpu
