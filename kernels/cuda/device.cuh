// Common parts of the kernels: storage types, 16-byte vectors, sums over a warp and a block, launches.
// Compiled with -fmad=false -ftz=true like the CPU's vector code: multiply-adds are written explicitly, so
// that both backends round equally where they execute the same operations.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/check.h"
#include "kernels/cuda/ops.h"

namespace shardscope::kernels::cuda {

template <class T>
__device__ __forceinline__ float to_float(T x);
template <>
__device__ __forceinline__ float to_float(float x) {
  return x;
}
template <>
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <>
__device__ __forceinline__ float to_float(__half x) {
  return __half2float(x);
}
/// Rounded to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float(float x) {
  return __float2half_rn(x);
}

/// N elements that are loaded and stored together; N * sizeof(T) is 4, 8 or 16. alignas lets the compiler use
/// a single instruction; the address must be a multiple of it.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T x[N];
};

/// f(tag) with a value of the storage type. Throws KernelError for i8, which has no
/// arithmetic.
template <class F>
void with_type(const char* kernel, DType type, F f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(__nv_bfloat16{});
    case DType::f16:
      return f(__half{});
    case DType::i8:
      break;
  }
  throw_bad_argument(kernel, "quantized values have no arithmetic; dequantize them first");
}

inline cudaStream_t stream_of(const Context& on) { return static_cast<cudaStream_t>(on.stream()); }

inline bool aligned(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}

/// Blocks for n items with `per_thread` items per thread; enough to fill the
/// device, the rest is looped over. At most 16 blocks per multiprocessor.
/// Sums over elements must not use it: their order would depend on the
/// device.
inline unsigned blocks_for(const Context& on, std::int64_t n, int threads, int per_thread) {
  const std::int64_t per_block = std::int64_t{threads} * per_thread;
  const std::int64_t wanted = (n + per_block - 1) / per_block;
  const std::int64_t most = std::int64_t{on.multiprocessors()} * 16;
  return static_cast<unsigned>(wanted < 1 ? 1 : (wanted < most ? wanted : most));
}

template <class T>
__device__ __forceinline__ T warp_sum(T x) {
  // Butterfly: both lanes of a pair add the same two numbers, so all lanes get the same bits.
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFU, x, step);
  return x;
}
// Must be called by the whole warp; NaN is dropped (fmaxf).
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, step));
  return x;
}

/// Sum over the block in a fixed order, returned on every thread; blockDim.x is a multiple of 32, at most
/// 1024. All threads of the block must call it. Every warp adds up the warps' sums, which saves a barrier.
template <class T>
__device__ __forceinline__ T block_sum(T x) {
  __shared__ T sums[32];
  x = warp_sum(x);
  __syncthreads();  // other threads may still be reading an earlier result
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  // Lanes without a warp add 0.
  const unsigned lane = threadIdx.x % 32;
  x = lane < blockDim.x / 32 ? sums[lane] : T{};
  return warp_sum(x);
}

}  // namespace shardscope::kernels::cuda
