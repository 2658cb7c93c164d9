// The operations that kernels/cpu and kernels/cuda implement. Dims: B batch, T tokens, C width, H heads,
// V vocabulary, N rows (usually B*T). Arrays are contiguous, row-major. Arithmetic is fp32 whatever the
// storage type; 16-bit results are rounded once, to nearest even. All calls are stream-ordered on
// `exec`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace shardscope::kernels {

/// How a result is written: activations are set, parameter gradients are added to the old value.
enum class Write : std::uint8_t { set, add };

// ---- dense layers (fp32 products of cpu/gemm.h on the CPU, cuBLASLt on CUDA) ----
/// y[N,out] = x[N,in] w[out,in]^T (+ bias[out]) (+ onto[N,out]); bias.data and onto.data may be null. `onto`
/// has the type of y and must not overlap it.
void linear_forward(const Exec&, Ptr y, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                    std::int64_t in, std::int64_t out, ConstPtr onto = {});
/// dx[N,in] = dy[N,out] w[out,in]; dx.data may be null (first layer).
void linear_backward_input(const Exec&, Ptr dx, ConstPtr dy, ConstPtr w, std::int64_t N, std::int64_t in,
                           std::int64_t out, Write write);
/// dw[out,in] (+)= dy^T x; dbias[out] (+)= column sums of dy. Either may be null; without dw x is not read.
void linear_backward_weight(const Exec&, Ptr dw, Ptr dbias, ConstPtr dy, ConstPtr x, std::int64_t N,
                            std::int64_t in, std::int64_t out, Write write);

// ---- normalisation and activations -------------------------------------------------------------
/// y[N,C]; mean[N] and rstd[N] fp32 are outputs for backward. Biased variance. In backward dweight and dbias
/// may be null.
void layer_norm_forward(const Exec&, Ptr y, float* mean, float* rstd, ConstPtr x, ConstPtr weight,
                        ConstPtr bias, std::int64_t N, std::int64_t C, float epsilon);
void layer_norm_backward(const Exec&, Ptr dx, Ptr dweight, Ptr dbias, ConstPtr dy, ConstPtr x,
                         ConstPtr weight, const float* mean, const float* rstd, std::int64_t N,
                         std::int64_t C, Write write_dx, Write write_params);
/// Tanh form: 0.5 u (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3))).
void gelu_forward(const Exec&, Ptr y, ConstPtr x, std::int64_t n);
void gelu_backward(const Exec&, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
/// A linear layer followed by a GELU: y[N,out] = gelu(x w^T + bias), bias.data may be null. kept[N,out] is an
/// output for backward: the GELU's argument, or its slope if forward has computed the exponential, memory is
/// slower than arithmetic and nothing is rounded (fp32 on the CPU). Bitwise equal to the two operations in
/// sequence, except in 16 bits on CUDA: if the product's epilogue computes it (kernels/cuda/linear.cpp), the
/// GELU is applied to the sum before rounding, with cuBLASLt's tanh.
void linear_gelu_forward(const Exec&, Ptr y, Ptr kept, ConstPtr x, ConstPtr w, ConstPtr bias, std::int64_t N,
                         std::int64_t in, std::int64_t out);
/// gelu_backward from `kept`.
void gelu_backward_kept(const Exec&, Ptr dx, ConstPtr dy, ConstPtr kept, std::int64_t n);
/// Gradient of the input of a linear layer that follows a GELU: dx[N,in] = the GELU's gradient of dy w, from
/// kept[N,in], which dx must not overlap. Bits as above.
void linear_gelu_backward_input(const Exec&, Ptr dx, ConstPtr dy, ConstPtr w, ConstPtr kept, std::int64_t N,
                                std::int64_t in, std::int64_t out);
void relu_forward(const Exec&, Ptr y, ConstPtr x, std::int64_t n);
void relu_backward(const Exec&, Ptr dx, ConstPtr dy, ConstPtr x, std::int64_t n);
/// y = a + b, element by element; y may alias a or b.
void add(const Exec&, Ptr y, ConstPtr a, ConstPtr b, std::int64_t n);

// ---- embedding -----------------------------------------------------------------------------------
/// y[N,C] (set or add) = table[index[i], :]. The caller must check indices when data is read.
void embedding_forward(const Exec&, Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N,
                       std::int64_t C, Write write);
/// dtable[rows,C] += dy[i,:] at row index[i], in order of i (deterministic). `Write::set` zeroes first.
void embedding_backward(const Exec&, Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N,
                        std::int64_t rows, std::int64_t C, Write write);

// ---- causal multi-head attention ------------------------------------------------------------------
/// out[B,T,C] from qkv[B,T,3C] (q | k | v, head h in columns [h*C/H, (h+1)*C/H) of each); scores scaled by
/// 1/sqrt(C/H), position t sees 0..t. logsumexp[B,H,T] fp32 is an output for backward. Never stores T x T.
void attention_forward(const Exec&, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B, std::int64_t T,
                       std::int64_t C, std::int64_t H, void* scratch);
void attention_backward(const Exec&, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch);
[[nodiscard]] std::size_t attention_scratch_bytes(const Exec&, DType type, std::int64_t B, std::int64_t T,
                                                  std::int64_t C, std::int64_t H);

// ---- losses ----------------------------------------------------------------------------------------
/// Mean cross entropy over the rows of logits[N,V] against target[N]. Rows with a target below 0 are ignored:
/// they are not counted and their gradient is 0; `ignored` must be their number. *loss fp32, NaN if all are
/// ignored, as in torch. logits are overwritten by their gradient times `grad_scale` (no second logits
/// buffer).
void cross_entropy(const Exec&, float* loss, Ptr logits, const std::int32_t* target, std::int64_t N,
                   std::int64_t V, float grad_scale, std::int64_t ignored = 0);
/// Mean of (x - target)^2 over n elements; dx = 2 (x - target) / n * grad_scale.
void mse(const Exec&, float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n, float grad_scale);

// ---- optimizer and reductions over shards -----------------------------------------------------------
struct AdamW {
  float lr = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0.01F;
  std::int64_t step = 1;    ///< t, from 1
  bool decoupled = true;    ///< true: AdamW; false: L2 term added to the gradient (Adam)
  float grad_scale = 1.0F;  ///< gradient is multiplied by this first (unscale, clip)
};
/// master, m, v fp32[n]; grad any type[n]; param16 (data may be null) receives the rounded master weights.
/// w *= 1 - lr*wd; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) +
/// eps). Element-wise and bitwise independent of where a shard begins or ends.
void adamw_step(const Exec&, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings);
/// *sum += sum of squares in double; *bad |= 1 when any element is inf or nan.
void squared_norm(const Exec&, double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n);
/// Numbers of elements that are not finite.
struct NotFiniteCount {
  std::uint64_t infinite = 0;  ///< of either sign
  std::uint64_t nan = 0;
};
/// Adds those of x[n] to *counts. For a gradient in which squared_norm() found some.
void count_not_finite(const Exec&, NotFiniteCount* counts, ConstPtr x, std::int64_t n);
/// dst[i] = convert(src[i]).
void cast(const Exec&, Ptr dst, ConstPtr src, std::int64_t n);
void fill_zero(const Exec&, void* data, std::size_t bytes);
/// x *= factor.
void scale(const Exec&, Ptr x, float factor, std::int64_t n);
/// dst (+)= src, fp32 arithmetic.
void accumulate(const Exec&, Ptr dst, ConstPtr src, std::int64_t n);
/// out[i] = factor * sum over k (in index order) of inputs[k][i], summed in fp32, rounded once. The fixed
/// order makes stages agree bitwise. `inputs` is an array of `count` pointers of one type.
void reduce_sum(const Exec&, Ptr out, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t n, float factor);

// ---- quantization (ZeRO++) ---------------------------------------------------------------------------
// Symmetric, in consecutive groups of `group_elems` (the last of n may be shorter), each with one fp32 scale
// = largest magnitude / 127 (int8) or / 7 (int4): |x - value * scale| <= scale / 2. An inf or NaN in a group
// makes the whole group not finite; a group below 1e-36 becomes zeros. int4: two values per byte, the even
// one in the low half; n and group_elems are even.
/// values[n], scales[ceil(n / group_elems)].
void quantize_int8(const Exec&, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems);
void dequantize_int8(const Exec&, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems);

/// Error feedback of quantized gradients (LoCo): the rounding error is stored as int8 in the same groups, and
/// added in the next call: h = x + e is quantized to q, then e <- beta * e + (1 - beta) * (h - q). If h is
/// not finite, the group's error is set to 0. values null: none.
struct ErrorFeedback {
  std::int8_t* values = nullptr;  ///< [n]
  float* scales = nullptr;        ///< [groups]
  float beta = 0.8F;
};
/// values[n / 2].
void quantize_int4(const Exec&, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error = {});
/// An int4 array of n elements with its scales.
struct Int4Source {
  const std::uint8_t* values = nullptr;
  const float* scales = nullptr;
};
/// Quantizes factor * sum of `count` sources, dequantized and summed in fp32 in index order, without storing
/// the sum.
void requantize_int4(const Exec&, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error = {});
/// x = factor * sum of `count` sources in index order.
void dequantize_sum_int4(const Exec&, Ptr x, const Int4Source* sources, std::uint32_t count, std::int64_t n,
                         std::int64_t group_elems, float factor);

/// Bytes of scratch held by the CPU backend's threads for matrix products and conversions, for memory
/// accounting. Grows with the largest shapes and stays constant after the first step.
[[nodiscard]] std::size_t cpu_workspace_bytes() noexcept;

}  // namespace shardscope::kernels
