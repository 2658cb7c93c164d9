// Declarations of one instruction set's kernels, collected into its table by table.cpp. Contracts: cpu/isa.h.
// Names are equal in every namespace SHARDSCOPE_ISA; only the table may refer to them, since the CPU may lack
// the instructions.
#pragma once

#include "kernels/cpu/isa.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {

#if defined(__AVX512F__)
void gemm(const Gemm& g, const float* a, const float* b, float* c, const float* bias, float* scratch);
std::int64_t gemm_scratch_floats();
#else
// oneDNN's product is used.
inline constexpr decltype(VectorKernels::gemm) gemm = nullptr;
inline constexpr decltype(VectorKernels::gemm_scratch_floats) gemm_scratch_floats = nullptr;
#endif
// Element-wise. Storage types are run-time arguments, arithmetic is fp32 (ops.h).
void cast(void* dst, DType dst_type, const void* src, DType src_type, std::int64_t n);
void scale(void* x, DType type, float factor, std::int64_t n);
void add(void* y, DType y_type, const void* a, DType a_type, const void* b, DType b_type, std::int64_t n);
void gelu_forward(void* y, DType y_type, const void* x, DType x_type, std::int64_t n);
void gelu_backward(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                   std::int64_t n);
void gelu_rows_slope(float* y, std::int64_t ldy, float* x, std::int64_t ldx, std::int64_t rows,
                     std::int64_t n);
void multiply(float* y, const float* a, const float* b, std::int64_t n);
void relu_forward(void* y, DType y_type, const void* x, DType x_type, std::int64_t n);
void relu_backward(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                   std::int64_t n);
// Rows and columns of fp32 buffers of a product; `ld` is the leading dimension in elements.
void add_bias(float* y, const float* bias, std::int64_t rows, std::int64_t cols, std::int64_t ld);
void column_sums(float* total, float* partial, const void* x, DType type, std::int64_t rows,
                 std::int64_t cols, float* row);
// Row by row; the caller gives the scratch, one for each of its threads.
void layer_norm_forward(void* y, DType y_type, float* mean, float* rstd, const void* x, DType x_type,
                        const float* weight, const float* bias, std::int64_t rows, std::int64_t C,
                        float epsilon, float* row);
void layer_norm_backward(void* dx, DType dx_type, bool add_dx, float* dweight, float* dbias, const void* dy,
                         DType dy_type, const void* x, DType x_type, const float* weight, const float* mean,
                         const float* rstd, std::int64_t rows, std::int64_t C, float* scratch);
void attention_forward(void* out, float* logsumexp, const void* qkv, DType type, const AttentionShape& shape,
                       std::int64_t first, std::int64_t last, float* scratch);
void attention_backward(void* dqkv, const void* dout, const void* out, const void* qkv, DType type,
                        const float* logsumexp, const AttentionShape& shape, std::int64_t first,
                        std::int64_t last, float* scratch);
std::int64_t attention_scratch_floats(const AttentionShape& shape);
// Losses are returned as sums in double.
double cross_entropy(void* logits, DType type, const std::int32_t* target, std::int64_t rows, std::int64_t V,
                     float factor, float* row);
double mse(void* dx, DType dx_type, const void* x, DType x_type, const float* target, std::int64_t n,
           float factor);
void adamw(float* master, float* m, float* v, void* param16, DType param16_type, const void* grad,
           DType grad_type, std::int64_t n, const AdamWScalars& scalars);
void add_abs(float* sums, const void* x, DType type, std::int64_t n);
// In double: in fp32 a long sum would lose small terms.
double squared_norm(std::uint32_t* bad, const void* x, DType type, std::int64_t n);
void reduce_sum(void* out, DType out_type, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t offset, std::int64_t n, float factor);
// Whole groups from the start of the arrays; int4: two values in a byte, the even one in the low half.
void quantize_int8(std::int8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                   std::int64_t group_elems);
void dequantize_int8(void* x, DType type, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems);
void quantize_int4(std::uint8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error);
void requantize_int4(std::uint8_t* values, float* scales, const Int4Source* sources, std::uint32_t count,
                     std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error);
void dequantize_sum_int4(void* x, DType type, const Int4Source* sources, std::uint32_t count,
                         std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor);

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
