#include "kernels/cuda/attention.h"

#include <cstdint>
#include <initializer_list>
#include <string>

#include "kernels/error.h"

namespace shardscope::kernels::cuda {
namespace {

// Whether rows can be read and written 16 bytes at a time, as the cuDNN and the tensor-core kernels do.
bool aligned(std::initializer_list<const void*> arrays) {
  for (const void* array : arrays) {
    if (reinterpret_cast<std::uintptr_t>(array) % 16 != 0) return false;
  }
  return true;
}

// Depends only on context, type and shape, so that attention_scratch_bytes() decides like the calls;
// unaligned arrays, which it does not know of, only select kernels that need less scratch memory.
bool by_cudnn(const Context& on, DType type, const AttentionShape& shape) {
  return on.attention() == Context::Attention::cudnn && cudnn_attention_fits(type, shape);
}

void check_width(const char* kernel, const AttentionShape& shape) {
  if (shape.width() <= kWidestHead) return;
  throw_bad_argument(kernel, "heads of " + std::to_string(shape.width()) +
                                 " are wider than the CUDA kernels take (" + std::to_string(kWidestHead) +
                                 "); use more heads");
}

}  // namespace

void attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B,
                       std::int64_t T, std::int64_t C, std::int64_t H, void* scratch) {
  const AttentionShape shape{B, T, C, H};
  check_width("attention_forward", shape);
  if (B == 0 || T == 0) return;
  const bool in_vectors = aligned({out.data, qkv.data});
  if (in_vectors && by_cudnn(on, qkv.type, shape)) {
    cudnn_attention_forward(on, out, logsumexp, qkv, shape, scratch);
  } else if (in_vectors && tensor_attention_fits(on, qkv.type, shape)) {
    tensor_attention_forward(on, out, logsumexp, qkv, shape);
  } else {
    plain_attention_forward(on, out, logsumexp, qkv, shape);
  }
}

void attention_backward(const Context& on, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch) {
  const AttentionShape shape{B, T, C, H};
  check_width("attention_backward", shape);
  if (B == 0 || T == 0) return;
  // For our own kernels: fp32 [B,H,T].
  auto* delta = static_cast<float*>(scratch);
  const bool in_vectors = aligned({dqkv.data, dout.data, out.data, qkv.data});
  if (in_vectors && by_cudnn(on, qkv.type, shape)) {
    cudnn_attention_backward(on, dqkv, dout, out, qkv, logsumexp, shape, scratch);
  } else if (in_vectors && tensor_attention_fits(on, qkv.type, shape)) {
    tensor_attention_backward(on, dqkv, dout, out, qkv, logsumexp, shape, delta);
  } else {
    plain_attention_backward(on, dqkv, dout, out, qkv, logsumexp, shape, delta);
  }
}

std::size_t attention_scratch_bytes(const Context& on, DType type, std::int64_t B, std::int64_t T,
                                    std::int64_t C, std::int64_t H) {
  const AttentionShape shape{B, T, C, H};
  // With cuDNN this creates the shape's plans. Its scratch contains delta [B,H,T] too.
  if (B > 0 && T > 0 && by_cudnn(on, type, shape)) return cudnn_attention_scratch_bytes(on, type, shape);
  return static_cast<std::size_t>(B * H * T) * sizeof(float);
}

}  // namespace shardscope::kernels::cuda
