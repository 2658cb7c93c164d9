// The three implementations of attention on CUDA; attention.cpp chooses one.
#pragma once

#include <cmath>

#include "kernels/cuda/ops.h"

namespace shardscope::kernels::cuda {

struct AttentionShape {
  std::int64_t B, T, C, H;
  [[nodiscard]] std::int64_t width() const { return C / H; }  ///< of a head
  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(width())); }
};

/// 16-bit types, heads of 64 or 128, arrays aligned to 16 bytes (checked by the caller), B * H at most 65535,
/// T at most 2^30, a device whose blocks may have 96 KiB of shared memory.
[[nodiscard]] bool tensor_attention_fits(const Context&, DType type, const AttentionShape&);
void tensor_attention_forward(const Context&, Ptr out, float* logsumexp, ConstPtr qkv, const AttentionShape&);
/// delta: scratch of B*H*T floats, written by the first kernel and read by the
/// others.
void tensor_attention_backward(const Context&, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                               const float* logsumexp, const AttentionShape&, float* delta);

/// Any type, any head up to this width.
inline constexpr std::int64_t kWidestHead = 256;
void plain_attention_forward(const Context&, Ptr out, float* logsumexp, ConstPtr qkv, const AttentionShape&);
void plain_attention_backward(const Context&, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                              const float* logsumexp, const AttentionShape&, float* delta);

/// cuDNN's fused kernels: 16-bit types, heads of up to 128 in steps of 8, arrays aligned to 16 bytes. Its
/// backward adds to the gradients of queries in the order in which blocks finish: their last digits differ
/// from run to run. T x T is never stored. `scratch`: cudnn_attention_scratch_bytes().
[[nodiscard]] bool cudnn_attention_fits(DType type, const AttentionShape&);
[[nodiscard]] std::size_t cudnn_attention_scratch_bytes(const Context&, DType type, const AttentionShape&);
void cudnn_attention_forward(const Context&, Ptr out, float* logsumexp, ConstPtr qkv, const AttentionShape&,
                             void* scratch);
void cudnn_attention_backward(const Context&, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                              const float* logsumexp, const AttentionShape&, void* scratch);

}  // namespace shardscope::kernels::cuda
