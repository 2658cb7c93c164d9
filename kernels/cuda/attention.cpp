#include "kernels/cuda/attention.h"

#include <cstdint>
#include <initializer_list>
#include <string>

#include "kernels/error.h"

namespace shardscope::kernels::cuda {
namespace {

bool on_tensor_cores(const Context& on, DType type, const AttentionShape& shape,
                     std::initializer_list<const void*> arrays) {
  for (const void* array : arrays) {
    if (reinterpret_cast<std::uintptr_t>(array) % 16 != 0) return false;
  }
  return tensor_attention_fits(on, type, shape);
}

void check_width(const char* kernel, const AttentionShape& shape) {
  if (shape.width() <= kWidestHead) return;
  throw_bad_argument(kernel, "heads of " + std::to_string(shape.width()) +
                                 " are wider than the CUDA kernels take (" + std::to_string(kWidestHead) +
                                 "); use more heads");
}

}  // namespace

void attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B,
                       std::int64_t T, std::int64_t C, std::int64_t H, void* /*scratch*/) {
  const AttentionShape shape{B, T, C, H};
  check_width("attention_forward", shape);
  if (B == 0 || T == 0) return;
  if (on_tensor_cores(on, qkv.type, shape, {out.data, qkv.data})) {
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
  auto* delta = static_cast<float*>(scratch);
  if (on_tensor_cores(on, qkv.type, shape, {dqkv.data, dout.data, out.data, qkv.data})) {
    tensor_attention_backward(on, dqkv, dout, out, qkv, logsumexp, shape, delta);
  } else {
    plain_attention_backward(on, dqkv, dout, out, qkv, logsumexp, shape, delta);
  }
}

std::size_t attention_scratch_bytes(const Context& /*on*/, DType /*type*/, std::int64_t B, std::int64_t T,
                                    std::int64_t /*C*/, std::int64_t H) {
  return static_cast<std::size_t>(B * H * T) * sizeof(float);
}

}  // namespace shardscope::kernels::cuda
