// Operations on parameters, gradients and optimizer states, and on columns of matrices: see dispatch.h.
#include <string>

#include "kernels/columns.h"
#include "kernels/cost/work.h"
#include "kernels/cpu/ops.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/ops.h"
#include "kernels/dispatch.h"

namespace shardscope::kernels {
namespace {

/// Checks groups of quantized values; `unit`: values per byte.
void check_groups(const char* kernel, std::int64_t n, std::int64_t group_elems, std::int64_t unit) {
  check_size(kernel, "n", n);
  check_size(kernel, "group_elems", group_elems, 1);
  if (n % unit == 0 && group_elems % unit == 0) return;
  throw_bad_argument(kernel, "n is " + std::to_string(n) + " and group_elems " + std::to_string(group_elems) +
                                 "; both must be even, two values share a byte");
}

// A part is a range of a row-major matrix: it may begin and end inside a row.
// first_column is in [0, columns).
void check_part(const char* kernel, const MatrixPart& part) {
  if (part.elems < 0 || part.columns < 1 || part.first_column < 0 || part.first_column >= part.columns) {
    throw_bad_argument(kernel, std::to_string(part.elems) + " elements from column " +
                                   std::to_string(part.first_column) + " of " + std::to_string(part.columns) +
                                   "; the first column must be one of them");
  }
}

}  // namespace

// Formula in ops.h. Each element depends on its own states alone, so a shard may be updated piece by piece,
// on any thread or backend.
void adamw_step(const Exec& exec, float* master, float* m, float* v, Ptr param16, ConstPtr grad,
                std::int64_t n, const AdamW& settings) {
  check_size("adamw_step", "n", n);
  // t = 0 would divide by 1 - beta^0 = 0. Work: master, m and v of 4 bytes each are read and written, 24
  // bytes per element.
  check_size("adamw_step", "step", settings.step, 1);
  if (cost::metered(exec,
                    cost::memory_only(24 * real(n) + cost::bytes_of(grad.type, real(n)) +
                                      (param16.data == nullptr ? 0 : cost::bytes_of(param16.type, real(n))))))
    return;
  SHARDSCOPE_ON_CUDA(adamw_step, master, m, v, param16, grad, n, settings)
  cpu::adamw_step(cpu_threads(exec, "adamw_step"), master, m, v, param16, grad, n, settings);
}

// *sum += squares in double; *bad |= 1 on inf or NaN. One thread on the CPU: the order of the sum is part of
// the result, which stages compare bitwise.
void squared_norm(const Exec& exec, double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  check_size("squared_norm", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n))))) return;
  SHARDSCOPE_ON_CUDA(squared_norm, sum, bad, x, n)
  static_cast<void>(cpu_threads(exec, "squared_norm"));
  cpu::squared_norm(sum, bad, x, n);
}

// A second pass over a gradient in which squared_norm() has found some.
void count_not_finite(const Exec& exec, NotFiniteCount* counts, ConstPtr x, std::int64_t n) {
  check_size("count_not_finite", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n))))) return;
  SHARDSCOPE_ON_CUDA(count_not_finite, counts, x, n)
  static_cast<void>(cpu_threads(exec, "count_not_finite"));
  cpu::count_not_finite(counts, x, n);
}

// Narrower results are rounded once, to nearest even (ops.h).
void cast(const Exec& exec, Ptr dst, ConstPtr src, std::int64_t n) {
  check_size("cast", "n", n);
  if (cost::metered(exec,
                    cost::memory_only(cost::bytes_of(dst.type, real(n)) + cost::bytes_of(src.type, real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(cast, dst, src, n)
  cpu::cast(cpu_threads(exec, "cast"), dst, src, n);
}

// Bytes and not elements: padding and packed shards have no element type.
void fill_zero(const Exec& exec, void* data, std::size_t bytes) {
  if (cost::metered(exec, cost::memory_only(static_cast<double>(bytes)))) return;
  SHARDSCOPE_ON_CUDA(fill_zero, data, bytes)
  static_cast<void>(cpu_threads(exec, "fill_zero"));
  cpu::fill_zero(data, bytes);
}

// Read and written: twice the bytes. accumulate() also reads src.
void scale(const Exec& exec, Ptr x, float factor, std::int64_t n) {
  check_size("scale", "n", n);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, 2 * real(n))))) return;
  SHARDSCOPE_ON_CUDA(scale, x, factor, n)
  cpu::scale(cpu_threads(exec, "scale"), x, factor, n);
}

// dst = dst + src in fp32, rounded once to dst's type; dst is read and written.
void accumulate(const Exec& exec, Ptr dst, ConstPtr src, std::int64_t n) {
  check_size("accumulate", "n", n);
  if (cost::metered(
          exec, cost::memory_only(cost::bytes_of(dst.type, 2 * real(n)) + cost::bytes_of(src.type, real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(accumulate, dst, src, n)
  cpu::accumulate(cpu_threads(exec, "accumulate"), dst, src, n);
}

// In index order on every backend, rounded once at the end: what makes stages agree bitwise.
void reduce_sum(const Exec& exec, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor) {
  check_size("reduce_sum", "n", n);
  check_size("reduce_sum", "count", count, 1);
  // `count` arrays read, one written.
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(type, real(n) * (count + 1.0))))) return;
  SHARDSCOPE_ON_CUDA(reduce_sum, out, inputs, count, type, n, factor)
  cpu::reduce_sum(cpu_threads(exec, "reduce_sum"), out, inputs, count, type, n, factor);
}

void quantize_int8(const Exec& exec, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems) {
  // Scales, 4 bytes per group, are not counted as work here and below.
  check_groups("quantize_int8", n, group_elems, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + real(n)))) return;
  SHARDSCOPE_ON_CUDA(quantize_int8, values, scales, x, n, group_elems)
  cpu::quantize_int8(cpu_threads(exec, "quantize_int8"), values, scales, x, n, group_elems);
}

// x = value * scale of its group. The same work as quantizing: the wide array is written instead of read.
void dequantize_int8(const Exec& exec, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  check_groups("dequantize_int8", n, group_elems, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + real(n)))) return;
  SHARDSCOPE_ON_CUDA(dequantize_int8, x, values, scales, n, group_elems)
  cpu::dequantize_int8(cpu_threads(exec, "dequantize_int8"), x, values, scales, n, group_elems);
}

// values[n / 2]: two in a byte, the lower half first. Error feedback reads and writes its n int8 values.
void quantize_int4(const Exec& exec, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error) {
  // Halves are shared by two values, so no group may begin in the middle of a byte.
  check_groups("quantize_int4", n, group_elems, 2);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + 0.5 * real(n) +
                                            (error.values == nullptr ? 0 : 2 * real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(quantize_int4, values, scales, x, n, group_elems, error)
  cpu::quantize_int4(cpu_threads(exec, "quantize_int4"), values, scales, x, n, group_elems, error);
}

// The second hop of qgZ: sum in fp32 without storing it, then quantize; 4-bit input and output.
void requantize_int4(const Exec& exec, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error) {
  check_groups("requantize_int4", n, group_elems, 2);
  check_size("requantize_int4", "count", count, 1);
  if (cost::metered(exec, cost::memory_only(0.5 * real(n) * (count + 1.0) +
                                            (error.values == nullptr ? 0 : 2 * real(n)))))
    return;
  SHARDSCOPE_ON_CUDA(requantize_int4, values, scales, sources, count, n, group_elems, factor, error)
  cpu::requantize_int4(cpu_threads(exec, "requantize_int4"), values, scales, sources, count, n, group_elems,
                       factor, error);
}

// The end of qgZ: `count` 4-bit sources become one array of x.type.
void dequantize_sum_int4(const Exec& exec, Ptr x, const Int4Source* sources, std::uint32_t count,
                         std::int64_t n, std::int64_t group_elems, float factor) {
  check_groups("dequantize_sum_int4", n, group_elems, 2);
  check_size("dequantize_sum_int4", "count", count, 1);
  if (cost::metered(exec, cost::memory_only(cost::bytes_of(x.type, real(n)) + 0.5 * real(n) * count))) return;
  SHARDSCOPE_ON_CUDA(dequantize_sum_int4, x, sources, count, n, group_elems, factor)
  cpu::dequantize_sum_int4(cpu_threads(exec, "dequantize_sum_int4"), x, sources, count, n, group_elems,
                           factor);
}

// ---- columns.h --------------------------------------------------------------------------------------------

// In row order: bitwise equal on every instruction set.
void column_abs_sums(const Exec& exec, float* sums, ConstPtr x, const MatrixPart& part) {
  check_part("column_abs_sums", part);
  if (cost::metered(exec,
                    cost::memory_only(cost::bytes_of(x.type, real(part.elems)) + 4 * real(part.columns))))
    return;
  SHARDSCOPE_ON_CUDA(column_abs_sums, sums, x, part)
  cpu::column_abs_sums(cpu_threads(exec, "column_abs_sums"), sums, x, part);
}

// On the host, for the sizes of buffers: counts without touching the matrix.
std::int64_t elems_in_columns(const MatrixPart& part, const std::int32_t* chosen,
                              std::int64_t count) noexcept {
  std::int64_t elems = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // The column's first element in the part; further ones follow every `columns` elements.
    const std::int64_t first = (chosen[i] - part.first_column + part.columns) % part.columns;
    if (first < part.elems) elems += (part.elems - first + part.columns - 1) / part.columns;
  }
  return elems;
}

void take_columns(const Exec& exec, Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count) {
  check_part("take_columns", part);
  check_same_type("take_columns", dst.type, x.type);
  if (cost::metered(exec, cost::moved_columns(x.type, part, real(count)))) return;
  SHARDSCOPE_ON_CUDA(take_columns, dst, x, part, chosen, count)
  cpu_threads(exec, "take_columns");
  cpu::take_columns(dst, x, part, chosen, count);
}

// The inverse of take_columns(), with the same work.
void put_columns(const Exec& exec, Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen,
                 std::int64_t count) {
  check_part("put_columns", part);
  check_same_type("put_columns", x.type, src.type);
  if (cost::metered(exec, cost::moved_columns(x.type, part, real(count)))) return;
  SHARDSCOPE_ON_CUDA(put_columns, x, src, part, chosen, count)
  cpu_threads(exec, "put_columns");
  cpu::put_columns(x, src, part, chosen, count);
}

}  // namespace shardscope::kernels
