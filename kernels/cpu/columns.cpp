#include "kernels/columns.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/error.h"

namespace shardscope::kernels {
namespace {

void check(const Exec& exec, const char* kernel, const MatrixPart& part) {
  if (exec.backend == Backend::cuda) throw_no_cuda(kernel);
  if (part.elems < 0 || part.columns < 1 || part.first_column < 0 || part.first_column >= part.columns) {
    throw_bad_argument(kernel, std::to_string(part.elems) + " elements from column " +
                                   std::to_string(part.first_column) + " of " + std::to_string(part.columns) +
                                   "; the first column must be one of them");
  }
}

/// Calls visit(offset of the element, its number) for every element in a chosen column.
template <class Visit>
void for_chosen(const MatrixPart& part, const std::int32_t* chosen, std::int64_t count, const Visit& visit) {
  std::int64_t number = 0;
  for (std::int64_t row = -part.first_column; row < part.elems; row += part.columns) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = row + chosen[i];
      if (at >= 0 && at < part.elems) visit(at, number++);
    }
  }
}

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

void check_types(const char* kernel, DType a, DType b) {
  if (a != b) throw_bad_argument(kernel, "source and destination have different types");
}

}  // namespace

void column_abs_sums(const Exec& exec, float* sums, ConstPtr x, const MatrixPart& part) {
  check(exec, "column_abs_sums", part);
  // Threads share out columns, so that every sum keeps its order.
  cpu::parallel_ranges(exec.threads, part.columns, 64, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    std::fill(sums + begin, sums + end, 0.0F);
    for (std::int64_t row = -part.first_column; row < part.elems; row += part.columns) {
      const std::int64_t from = std::max<std::int64_t>(row + begin, 0);
      const std::int64_t to = std::min(row + end, part.elems);
      if (from >= to) continue;
      cpu::vector_kernels().add_abs(sums + (from - row), cpu::at(x.data, size_of(x.type), from), x.type,
                                    to - from);
    }
  });
}

std::int64_t elems_in_columns(const MatrixPart& part, const std::int32_t* chosen,
                              std::int64_t count) noexcept {
  std::int64_t elems = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = (chosen[i] - part.first_column + part.columns) % part.columns;
    if (first < part.elems) elems += (part.elems - first + part.columns - 1) / part.columns;
  }
  return elems;
}

void take_columns(const Exec& exec, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count) {
  check(exec, "take_columns", part);
  check_types("take_columns", dst.type, x.type);
  if (x.type == DType::f32) {
    take(static_cast<float*>(dst.data), static_cast<const float*>(x.data), part, chosen, count);
  } else {
    take(static_cast<std::uint16_t*>(dst.data), static_cast<const std::uint16_t*>(x.data), part, chosen,
         count);
  }
}

void put_columns(const Exec& exec, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count) {
  check(exec, "put_columns", part);
  check_types("put_columns", x.type, src.type);
  if (x.type == DType::f32) {
    put(static_cast<float*>(x.data), static_cast<const float*>(src.data), part, chosen, count);
  } else {
    put(static_cast<std::uint16_t*>(x.data), static_cast<const std::uint16_t*>(src.data), part, chosen,
        count);
  }
}

}  // namespace shardscope::kernels
