// The vector kernels of one instruction set, as a table chosen once at run time. The caller partitions rows
// and ranges among threads; the table's functions run on the calling thread, allocate nothing and are
// independent of Exec.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/adamw_scalars.h"
#include "kernels/ops.h"
#include "kernels/types.h"

namespace shardscope::kernels::cpu {

enum class Isa : std::uint8_t { baseline, avx2, avx512 };

/// A causal attention problem; shapes as in ops.h, D = C / H.
struct AttentionShape {
  std::int64_t B, T, C, H;
};

struct Gemm;

struct VectorKernels {
  const char* name;
  /// A matrix product (gemm.h) on the calling thread, m, n, k > 0; scratch of gemm_scratch_floats(), aligned
  /// to 64 bytes. Null if oneDNN's is faster.
  void (*gemm)(const Gemm& shape, const float* a, const float* b, float* c, const float* bias,
               float* scratch);
  std::int64_t (*gemm_scratch_floats)();
  // Element-wise, n elements from the given pointers; operands may be identical but not overlap partially.
  void (*cast)(void* dst, DType dst_type, const void* src, DType src_type, std::int64_t n);
  void (*scale)(void* x, DType type, float factor, std::int64_t n);
  void (*add)(void* y, DType y_type, const void* a, DType a_type, const void* b, DType b_type,
              std::int64_t n);
  void (*gelu_forward)(void* y, DType y_type, const void* x, DType x_type, std::int64_t n);
  void (*gelu_backward)(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                        std::int64_t n);
  /// y = gelu(x), x = gelu'(x); rows[rows, n] with leading dimensions ldy and ldx.
  void (*gelu_rows_slope)(float* y, std::int64_t ldy, float* x, std::int64_t ldx, std::int64_t rows,
                          std::int64_t n);
  /// y[i] = a[i] * b[i]
  void (*multiply)(float* y, const float* a, const float* b, std::int64_t n);
  void (*relu_forward)(void* y, DType y_type, const void* x, DType x_type, std::int64_t n);
  void (*relu_backward)(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                        std::int64_t n);
  /// The first `cols` columns of each row of y[rows, ld] += bias[cols], in fp32.
  void (*add_bias)(float* y, const float* bias, std::int64_t rows, std::int64_t cols, std::int64_t ld);
  /// total[cols] += column sums of x[rows, cols], rows in order in groups of 64; `partial` and `row` are cols
  /// floats of scratch each.
  void (*column_sums)(float* total, float* partial, const void* x, DType type, std::int64_t rows,
                      std::int64_t cols, float* row);
  // Layer norm over rows. `row` is C floats of scratch.
  void (*layer_norm_forward)(void* y, DType y_type, float* mean, float* rstd, const void* x, DType x_type,
                             const float* weight, const float* bias, std::int64_t rows, std::int64_t C,
                             float epsilon, float* row);
  /// dx rows are set or added to; dweight[C] and dbias[C] fp32 are added to. `scratch` is 5 * C floats.
  void (*layer_norm_backward)(void* dx, DType dx_type, bool add_dx, float* dweight, float* dbias,
                              const void* dy, DType dy_type, const void* x, DType x_type, const float* weight,
                              const float* mean, const float* rstd, std::int64_t rows, std::int64_t C,
                              float* scratch);
  /// Heads [first, last) of B*H; scratch of attention_scratch_floats.
  void (*attention_forward)(void* out, float* logsumexp, const void* qkv, DType type,
                            const AttentionShape& shape, std::int64_t first, std::int64_t last,
                            float* scratch);
  void (*attention_backward)(void* dqkv, const void* dout, const void* out, const void* qkv, DType type,
                             const float* logsumexp, const AttentionShape& shape, std::int64_t first,
                             std::int64_t last, float* scratch);
  std::int64_t (*attention_scratch_floats)(const AttentionShape& shape);
  /// Returns the sum of the rows' losses; logits become (softmax - onehot) * factor, 0 if target < 0.
  /// `row` is V floats of scratch.
  double (*cross_entropy)(void* logits, DType type, const std::int32_t* target, std::int64_t rows,
                          std::int64_t V, float factor, float* row);
  /// Sum of squared differences; dx = (x - target) * factor.
  double (*mse)(void* dx, DType dx_type, const void* x, DType x_type, const float* target, std::int64_t n,
                float factor);
  /// n elements of each array; param16 may be null.
  void (*adamw)(float* master, float* m, float* v, void* param16, DType param16_type, const void* grad,
                DType grad_type, std::int64_t n, const AdamWScalars& scalars);
  /// sums[i] += |x[i]|
  void (*add_abs)(float* sums, const void* x, DType type, std::int64_t n);
  /// Returns the sum of squares; *bad |= 1 if an element is inf or NaN.
  double (*squared_norm)(std::uint32_t* bad, const void* x, DType type, std::int64_t n);
  /// out[i] = factor * sum over k of inputs[k][offset + i]; out starts at element 0.
  void (*reduce_sum)(void* out, DType out_type, const void* const* inputs, std::uint32_t count, DType type,
                     std::int64_t offset, std::int64_t n, float factor);
  // Quantization: whole groups from the start of the arrays; contracts in ops.h.
  void (*quantize_int8)(std::int8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                        std::int64_t group_elems);
  void (*dequantize_int8)(void* x, DType type, const std::int8_t* values, const float* scales, std::int64_t n,
                          std::int64_t group_elems);
  void (*quantize_int4)(std::uint8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                        std::int64_t group_elems, const ErrorFeedback& error);
  /// Elements [offset, offset + n) of the sources; offset is a multiple of group_elems.
  void (*requantize_int4)(std::uint8_t* values, float* scales, const Int4Source* sources, std::uint32_t count,
                          std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor,
                          const ErrorFeedback& error);
  void (*dequantize_sum_int4)(void* x, DType type, const Int4Source* sources, std::uint32_t count,
                              std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor);
};

namespace baseline {
extern const VectorKernels kTable;
}
namespace avx2 {
extern const VectorKernels kTable;
}
namespace avx512 {
extern const VectorKernels kTable;
}

/// The best table that this CPU supports, or the one chosen by `force_isa`.
[[nodiscard]] const VectorKernels& vector_kernels() noexcept;
/// Whether this CPU supports the instruction set.
[[nodiscard]] bool isa_supported(Isa isa) noexcept;
/// For tests and benchmarks: all threads use this instruction set from now on. Throws KernelError if the CPU
/// lacks it.
void force_isa(Isa isa);
[[nodiscard]] Isa best_isa() noexcept;

}  // namespace shardscope::kernels::cpu
