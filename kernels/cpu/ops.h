// The CPU backend: the operations of kernels/ops.h under the same contracts, on the calling thread and at
// most `threads` OpenMP threads.
//
// A call returns when the result is in memory. Scratch memory besides the arguments is the
// calling thread's workspace (workspace.h). Operations without `threads` run on the calling
// thread; among them are all sums over rows and elements, whose order must not depend on the
// number of threads.
#pragma once

#include "kernels/columns.h"
#include "kernels/ops.h"

namespace shardscope::kernels::cpu {

void linear_forward(int threads, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto);
void linear_backward_input(int threads, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write);
void linear_backward_weight(int threads, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write);
void layer_norm_forward(int threads, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon);
void layer_norm_backward(Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x, ConstPtr weight,
                         const float* mean, const float* rstd, std::int64_t N, std::int64_t C, Write write_dx,
                         Write write_params);
void gelu_forward(int threads, Ptr y, ConstPtr x, std::int64_t n);
void gelu_backward(int threads, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
/// dx[n] = dy[n] * slope[n], fp32. Used if forward kept the GELU's slope (keeps_slope() in dispatch.cpp).
void gelu_backward_slope(int threads, Ptr dx, ConstPtr dy, ConstPtr slope, std::int64_t n);
/// fp32 only: slope[N,out] receives the slope of the GELU.
void linear_gelu_forward(int threads, Ptr y, Ptr slope, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                         std::int64_t in, std::int64_t out);
void linear_gelu_backward_input(int threads, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr slope, std::int64_t N,
                                std::int64_t in, std::int64_t out);
void relu_forward(int threads, Ptr y, ConstPtr x, std::int64_t n);
void relu_backward(int threads, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
void add(int threads, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n);
void embedding_forward(Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N, std::int64_t C,
                       Write write);
void embedding_backward(Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N, std::int64_t rows,
                        std::int64_t C, Write write);
void attention_forward(int threads, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B, std::int64_t T,
                       std::int64_t C, std::int64_t H, void* scratch);
void attention_backward(int threads, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch);
[[nodiscard]] std::size_t attention_scratch_bytes(int threads, std::int64_t B, std::int64_t T, std::int64_t C,
                                                  std::int64_t H);
void cross_entropy(float* loss, Ptr logits, const std::int32_t* target, std::int64_t N, std::int64_t V,
                   float grad_scale, std::int64_t ignored);
void mse(float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n, float grad_scale);
void adamw_step(int threads, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings);
void squared_norm(double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n);
void count_not_finite(NotFiniteCount* counts, ConstPtr x, std::int64_t n);
void cast(int threads, Ptr dst, ConstPtr src, std::int64_t n);
void fill_zero(void* data, std::size_t bytes);
void scale(int threads, Ptr x, float factor, std::int64_t n);
void accumulate(int threads, Ptr dst, ConstPtr src, std::int64_t n);
void reduce_sum(int threads, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor);
void quantize_int8(int threads, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems);
void dequantize_int8(int threads, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems);
void quantize_int4(int threads, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error);
void requantize_int4(int threads, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error);
void dequantize_sum_int4(int threads, Ptr x, const Int4Source* sources, std::uint32_t count, std::int64_t n,
                         std::int64_t group_elems, float factor);

void column_abs_sums(int threads, float* sums, ConstPtr x, const MatrixPart& part);
void take_columns(Ptr dst, ConstPtr x, const MatrixPart& part, const std::int32_t* chosen,
                  std::int64_t count);
void put_columns(Ptr x, ConstPtr src, const MatrixPart& part, const std::int32_t* chosen, std::int64_t count);

}  // namespace shardscope::kernels::cpu
