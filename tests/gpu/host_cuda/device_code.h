// What nvcc knows by itself in device code, for a host's compiler: included before each of kernels/cuda's
// sources, in which launches.py has rewritten launches.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/gpu/host_cuda/block.h"

#undef __shared__
#define __shared__ static thread_local  // of a block: a stream's thread runs one at a time
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (::shardscope::host_cuda::indices().thread)
#define blockIdx (::shardscope::host_cuda::indices().block)
#define blockDim (::shardscope::host_cuda::indices().block_size)
#define gridDim (::shardscope::host_cuda::indices().grid_size)

template <class... A>
cudaError_t cudaFuncSetAttribute(void (*kernel)(A...), cudaFuncAttribute what, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), what, value);
}
inline void __syncthreads() { ::shardscope::host_cuda::block_barrier(false); }
inline int __syncthreads_or(int vote) { return ::shardscope::host_cuda::block_barrier(vote != 0) ? 1 : 0; }

namespace shardscope::host_cuda {

/// A collective of the whole warp: the words of all lanes.
template <class T>
const LaneWords* exchange(unsigned mask, T value) {
  static_assert(sizeof value <= 8);
  if (mask != 0xFFFFFFFFU) undefined("only whole warps are followed");
  LaneWords mine{};
  __builtin_memcpy(&mine.word[0], &value, sizeof value);
  return warp_exchange(mine);
}
template <class T>
T of_lane(const LaneWords* all, unsigned lane) {
  T value;
  __builtin_memcpy(&value, &all[lane].word[0], sizeof value);
  return value;
}

}  // namespace shardscope::host_cuda

template <class T>
T __shfl_sync(unsigned mask, T value, int from) {
  const auto* all = ::shardscope::host_cuda::exchange(mask, value);
  return ::shardscope::host_cuda::of_lane<T>(all, static_cast<unsigned>(from) % 32);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other) {
  const auto* all = ::shardscope::host_cuda::exchange(mask, value);
  return ::shardscope::host_cuda::of_lane<T>(all,
                                             ::shardscope::host_cuda::lane() ^ static_cast<unsigned>(other));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  const auto* all = ::shardscope::host_cuda::exchange(mask, value);
  const unsigned lane = ::shardscope::host_cuda::lane();
  return lane < distance ? value : ::shardscope::host_cuda::of_lane<T>(all, lane - distance);
}
inline unsigned __ballot_sync(unsigned mask, bool vote) {
  const auto* all = ::shardscope::host_cuda::exchange(mask, vote ? 1U : 0U);
  unsigned votes = 0;
  for (unsigned i = 0; i < 32; ++i) votes |= ::shardscope::host_cuda::of_lane<unsigned>(all, i) << i;
  return votes;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  const auto* all = ::shardscope::host_cuda::exchange(mask, value);
  unsigned most = 0;
  for (unsigned i = 0; i < 32; ++i) most = std::max(most, ::shardscope::host_cuda::of_lane<unsigned>(all, i));
  return most;
}

inline std::int32_t atomicAdd(std::int32_t* at, std::int32_t value) {
  return __atomic_fetch_add(at, value, 5);
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
  return __atomic_fetch_add(at, value, 5);
}
inline std::uint32_t atomicOr(std::uint32_t* at, std::uint32_t value) {
  return __atomic_fetch_or(at, value, 5);
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::lrintf(x)); }
template <class T>
T max(T a, T b) {
  return std::max(a, b);
}
