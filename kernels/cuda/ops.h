// The CUDA backend: the operations of kernels/ops.h under the same contracts, launched on a context's stream.
// All pointers are device memory, or pinned memory that the device can read, unless a comment says host.
//
// A call returns when its kernels are queued; they have completed when the stream has passed them. Launch
// errors are thrown at once (KernelError); errors of running kernels are reported by a later call (check.h).
#pragma once

#include "kernels/cuda/context.h"
#include "kernels/ops.h"

namespace shardscope::kernels::cuda {

void linear_forward(const Context&, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto);
void linear_backward_input(const Context&, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write);
void linear_backward_weight(const Context&, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write);
void linear_gelu_forward(const Context&, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias,
                         std::int64_t N, std::int64_t in, std::int64_t out);
void linear_gelu_backward_input(const Context&, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr kept,
                                std::int64_t N, std::int64_t in, std::int64_t out);
/// total[cols] (+)= sums over rows of x[rows, cols], first over groups of 64 rows; the order depends only on
/// the shape.
void column_sums(const Context&, Ptr total, ConstPtr x, std::int64_t rows, std::int64_t cols, Write write);
/// y[rows,cols] = row[cols] in every row.
void fill_rows(const Context&, Ptr y, ConstPtr row, std::int64_t rows, std::int64_t cols);
void layer_norm_forward(const Context&, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon);
void layer_norm_backward(const Context&, Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x,
                         ConstPtr weight, const float* mean, const float* rstd, std::int64_t N,
                         std::int64_t C, Write write_dx, Write write_params);
void gelu_forward(const Context&, Ptr y, ConstPtr x, std::int64_t n);
void gelu_backward(const Context&, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
void relu_forward(const Context&, Ptr y, ConstPtr x, std::int64_t n);
void relu_backward(const Context&, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
void add(const Context&, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n);
void embedding_forward(const Context&, Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N,
                       std::int64_t C, Write write);
void embedding_backward(const Context&, Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N,
                        std::int64_t rows, std::int64_t C, Write write);
void attention_forward(const Context&, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B,
                       std::int64_t T, std::int64_t C, std::int64_t H, void* scratch);
void attention_backward(const Context&, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch);
[[nodiscard]] std::size_t attention_scratch_bytes(const Context&, DType type, std::int64_t B, std::int64_t T,
                                                  std::int64_t C, std::int64_t H);
void cross_entropy(const Context&, float* loss, Ptr logits, const std::int32_t* target, std::int64_t N,
                   std::int64_t V, float grad_scale, std::int64_t ignored);
void mse(const Context&, float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n,
         float grad_scale);
void adamw_step(const Context&, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings);
void squared_norm(const Context&, double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n);
void count_not_finite(const Context&, NotFiniteCount* counts, ConstPtr x, std::int64_t n);
void cast(const Context&, Ptr dst, ConstPtr src, std::int64_t n);
void fill_zero(const Context&, void* data, std::size_t bytes);
void scale(const Context&, Ptr x, float factor, std::int64_t n);
void accumulate(const Context&, Ptr dst, ConstPtr src, std::int64_t n);
/// `inputs` is a host array of device pointers.
void reduce_sum(const Context&, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor);
void quantize_int8(const Context&, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems);
void dequantize_int8(const Context&, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems);
void quantize_int4(const Context&, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error);
/// `sources` is a host array.
void requantize_int4(const Context&, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error);
/// `sources` is a host array.
void dequantize_sum_int4(const Context&, Ptr x, const Int4Source* sources, std::uint32_t count,
                         std::int64_t n, std::int64_t group_elems, float factor);

}  // namespace shardscope::kernels::cuda
