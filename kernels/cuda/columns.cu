// Columns of a part of a row-major matrix (kernels/columns.h): scores, gather and scatter.
#include <algorithm>

#include "kernels/cuda/columns.h"
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;

/// Number of rows with elements of the part; the first and the last may be incomplete.
std::int64_t rows_of(const MatrixPart& part) {
  return (part.first_column + part.elems + part.columns - 1) / part.columns;
}

constexpr int kSumThreads = 32;  // a matrix of 768 columns still spreads over 24 multiprocessors
constexpr int kAhead = 8;        // rows whose loads are in flight at once

/// sums[c] = sum of |x| in column c of x[elems], a part of a matrix that begins in column
/// first_column; one thread per column in row order: bitwise equal to the CPU.
/// Neighbouring threads read neighbouring elements of a row. A tree over rows would round
/// differently.
template <class T>
__global__ void __launch_bounds__(kSumThreads)
    abs_sums_kernel(float* sums, const T* x, std::int64_t elems, std::int64_t columns,
                    std::int64_t first_column) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kSumThreads + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  // The column's first element: in the part's first row, or in the second if the part begins after it.
  std::int64_t at = column - first_column;
  if (at < 0) at += columns;
  for (; at + (kAhead - 1) * columns < elems; at += kAhead * columns) {
    // Loads first, so that all are in flight; then the additions, in order.
    float ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = to_float(x[at + i * columns]);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) sum = sum + fabsf(ahead[i]);
  }
  for (; at < elems; at += columns) sum = sum + fabsf(to_float(x[at]));
  sums[column] = sum;
}

/// One grid row per matrix row, threads along the chosen columns. kPut: x <- packed, else the
/// reverse. `packed` holds the chosen elements row by row. Elements are copied as bits, without
/// conversion.
template <bool kPut, class Bits>
__global__ void __launch_bounds__(kThreads)
    move_columns_kernel(Bits* x, Bits* packed, const std::int32_t* chosen, std::int64_t count,
                        std::int64_t elems, std::int64_t columns, std::int64_t first_column,
                        std::int64_t rows) {
  // The first row lacks the chosen columns before the part's first element; their number is only known on the
  // device, so every thread searches for it. `chosen` is ascending.
  std::int64_t low = 0;
  std::int64_t high = count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (chosen[middle] < first_column) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const std::int64_t skipped = low;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t column = chosen[i];
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const std::int64_t at = row * columns + column - first_column;
    if (at < 0 || at >= elems) continue;
    // Every row before this one has all `count` columns, except the first, which lacks `skipped`. Only the
    // last row can be cut at its end, and nothing follows it.
    const std::int64_t number = row * count + i - skipped;
    if constexpr (kPut) {
      x[at] = packed[number];
    } else {
      packed[number] = x[at];
    }
  }
}

template <bool kPut>
void move_columns(const Context& on, const char* kernel, void* x, void* packed, std::size_t size,
                  const MatrixPart& part, const std::int32_t* chosen, std::int64_t count) {
  const std::int64_t rows = rows_of(part);
  if (rows == 0 || count == 0) return;
  constexpr std::int64_t kMostRows = 1024;  // blocks along y; the rest is looped over
  const dim3 grid(static_cast<unsigned>((count + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min(rows, kMostRows)));
  const auto launch = [&](auto bits) {
    using Bits = decltype(bits);
    move_columns_kernel<kPut>
        <<<grid, kThreads, 0, stream_of(on)>>>(static_cast<Bits*>(x), static_cast<Bits*>(packed), chosen,
                                               count, part.elems, part.columns, part.first_column, rows);
  };
  if (size == 4) {
    launch(std::uint32_t{});
  } else {
    launch(std::uint16_t{});
  }
  check_launch(kernel);
}

}  // namespace

void column_abs_sums(const Context& on, float* sums, ConstPtr x, const MatrixPart& part) {
  with_type("column_abs_sums", x.type, [&](auto tag) {
    using T = decltype(tag);
    abs_sums_kernel<<<static_cast<unsigned>((part.columns + kSumThreads - 1) / kSumThreads), kSumThreads, 0,
                      stream_of(on)>>>(sums, static_cast<const T*>(x.data), part.elems, part.columns,
                                       part.first_column);
  });
  check_launch("column_abs_sums");
}

void take_columns(const Context& on, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count) {
  move_columns<false>(on, "take_columns", const_cast<void*>(x.data), dst.data, size_of(x.type), part, chosen,
                      count);
}

void put_columns(const Context& on, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count) {
  move_columns<true>(on, "put_columns", x.data, const_cast<void*>(src.data), size_of(x.type), part, chosen,
                     count);
}

}  // namespace shardscope::kernels::cuda
