#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {
namespace {

/// Rounds a caller's scratch up to a cache line: vectors that straddle two lines load at half the rate.
float* aligned(void* scratch) {
  return reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(scratch) + 63) / 64 * 64);
}

/// Each worker's scratch starts on its own cache line.
std::int64_t floats_per_worker(const AttentionShape& shape) {
  return (vector_kernels().attention_scratch_floats(shape) + 15) / 16 * 16;
}

}  // namespace

std::size_t attention_scratch_bytes(int threads, std::int64_t B, std::int64_t T, std::int64_t C,
                                    std::int64_t H) {
  const AttentionShape shape{B, T, C, H};
  // 64 bytes more: aligned() may skip up to 63.
  return static_cast<std::size_t>(floats_per_worker(shape) * std::max(threads, 1)) * sizeof(float) + 64;
}

// Parallel over heads: they write disjoint parts of the results. Each head is computed by one thread in a
// fixed order, so that the bits do not depend on `threads`.
void attention_forward(int threads, Ptr out, float* logsumexp, ConstPtr qkv, std::int64_t B, std::int64_t T,
                       std::int64_t C, std::int64_t H, void* scratch) {
  const AttentionShape shape{B, T, C, H};
  parallel_ranges(threads, B * H, 1, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    vector_kernels().attention_forward(out.data, logsumexp, qkv.data, qkv.type, shape, begin, end,
                                       aligned(scratch) + worker * floats_per_worker(shape));
  });
}

void attention_backward(int threads, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                        const float* logsumexp, std::int64_t B, std::int64_t T, std::int64_t C,
                        std::int64_t H, void* scratch) {
  const AttentionShape shape{B, T, C, H};
  parallel_ranges(threads, B * H, 1, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    vector_kernels().attention_backward(dqkv.data, dout.data, out.data, qkv.data, qkv.type, logsumexp, shape,
                                        begin, end, aligned(scratch) + worker * floats_per_worker(shape));
  });
}

}  // namespace shardscope::kernels::cpu
