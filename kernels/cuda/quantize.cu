// Symmetric quantization in groups (ZeRO++): one block per group finds its largest magnitude and rounds. The
// operations are the CPU's, so that both backends give the same integers and scales.
//
// A block reads its group twice (with error feedback four times): for the largest magnitude, which determines
// the scale, and for the values. Nothing is stored between the passes, because a group may have any length;
// each pass recomputes its input with one of the Source types below. A source is called with (element, group)
// and returns the element as fp32.
#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::uint32_t kMaxSources = 256;

// x is about value * scale; value is an integer of magnitude up to `levels` (127 for int8, 7 for int4).
struct Scale {
  float scale;
  float inverse;  ///< 0 for a group of zeros or of non-finite values
};
__device__ __forceinline__ Scale scale_of(std::uint32_t magnitude_bits, float levels) {
  // Divisions round to nearest, as on the CPU: the scale is stored, and must not depend on the backend.
  const float scale = __fdiv_rn(__uint_as_float(magnitude_bits), levels);
  if (magnitude_bits >= 0x7F800000U) return {scale, 0.0F};
  // A subnormal scale has no finite inverse: the group is quantized to zeros.
  return scale >= 0x1p-126F ? Scale{scale, __fdiv_rn(1.0F, scale)} : Scale{0.0F, 0.0F};
}
// round(x * inverse), to nearest even, clamped to +-levels: the rounding of `inverse` could exceed
// them.
__device__ __forceinline__ int rounded(float x, float inverse, float levels) {
  float value = x * inverse;
  value = value < levels ? value : levels;
  value = value > -levels ? value : -levels;
  return __float2int_rn(value);
}

/// Maximum over the block of the bits of magnitudes, which order like the values; NaN is above infinity. So
/// one integer comparison finds the maximum and detects non-finite values. All threads must call it and get
/// it.
__device__ __forceinline__ std::uint32_t block_largest(std::uint32_t bits) {
  __shared__ std::uint32_t largest[32];
  bits = __reduce_max_sync(0xFFFFFFFFU, bits);
  // Other threads may still be reading an earlier result.
  __syncthreads();
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = bits;
  __syncthreads();
  // Every warp reduces the warps' results.
  bits = threadIdx.x % 32 < kThreads / 32 ? largest[threadIdx.x % 32] : 0U;
  return __reduce_max_sync(0xFFFFFFFFU, bits);
}

template <class T>
struct ArraySource {
  const T* x;
  __device__ float operator()(std::int64_t i, std::int64_t) const { return to_float(x[i]); }
};

/// Passed by value as a kernel argument, 4 KiB: the caller's array is in host memory and may change as soon
/// as the launch has returned. Kernels take it as __grid_constant__, so that its address can be used without
/// a copy.
struct Sources {
  Int4Source at[kMaxSources];
};
/// Element i: the low half of byte i / 2 if i is even, else the high one. (half ^ 8) - 8 sign-extends 4
/// bits.
__device__ __forceinline__ float unpacked(const std::uint8_t* values, std::int64_t i) {
  const int byte = values[i / 2];
  const int half = i % 2 == 0 ? byte & 0xF : byte >> 4;
  return static_cast<float>((half ^ 8) - 8);
}
/// factor * the sum of `count` int4 arrays, dequantized, added in index order. Product and sum are rounded
/// separately (-fmad=false), as on the CPU.
struct SumSource {
  const Sources* sources;
  std::uint32_t count;
  float factor;
  __device__ float operator()(std::int64_t i, std::int64_t group) const {
    float sum = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      sum += unpacked(sources->at[k].values, i) * sources->at[k].scales[group];
    }
    return sum * factor;
  }
};
/// h = x + e: another source plus the dequantized error of the previous call.
template <class Inner>
struct WithError {
  Inner inner;
  const std::int8_t* values;
  const float* scales;
  __device__ float operator()(std::int64_t i, std::int64_t group) const {
    return inner(i, group) + static_cast<float>(values[i]) * scales[group];
  }
};

/// The group of this block: elements [begin, end). Only the last group of n may be short.
struct Range {
  std::int64_t begin, end, group;
};
__device__ __forceinline__ Range range_of(std::int64_t n, std::int64_t group_elems) {
  const std::int64_t group = blockIdx.x;
  const std::int64_t begin = group * group_elems;
  return {begin, begin + group_elems < n ? begin + group_elems : n, group};
}

template <class Source>
__device__ std::uint32_t largest_of(const Source& source, const Range& r) {
  std::uint32_t most = 0;
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    most = max(most, __float_as_uint(source(i, r.group)) & 0x7FFFFFFFU);
  }
  return block_largest(most);
}

/// values[n] and scales[groups] of x[n]; one block per group of group_elems.
template <class T>
__global__ void __launch_bounds__(kThreads)
    int8_kernel(std::int8_t* values, float* scales, const T* x, std::int64_t n, std::int64_t group_elems) {
  const Range r = range_of(n, group_elems);
  const ArraySource<T> source{x};
  const Scale s = scale_of(largest_of(source, r), 127);
  // False for NaN too.
  const bool finite = s.scale < INFINITY;
  if (threadIdx.x == 0) scales[r.group] = s.scale;
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    // Not finite: any nonzero integer keeps inf and NaN visible after the multiplication.
    values[i] = finite ? static_cast<std::int8_t>(rounded(source(i, r.group), s.inverse, 127))
                       : static_cast<std::int8_t>(1);
  }
}

/// x[n] = values[n] * the scale of their group.
template <class T>
__global__ void __launch_bounds__(kThreads)
    from_int8_kernel(T* x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  const Range r = range_of(n, group_elems);
  const float scale = scales[r.group];
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    x[i] = from_float<T>(static_cast<float>(values[i]) * scale);
  }
}

/// A thread has pairs of values, which share a byte: no two threads write one byte. n and group_elems are
/// even (dispatch.cpp), so a pair is never split. In a non-finite group every value is 1, whose product with
/// the scale is not finite either.
template <class Source>
__device__ Scale quantize_group(const Source& source, std::uint8_t* values, float* scales, const Range& r) {
  const Scale s = scale_of(largest_of(source, r), 7);
  const bool finite = s.scale < INFINITY;
  if (threadIdx.x == 0) scales[r.group] = s.scale;
  for (std::int64_t i = r.begin + 2 * threadIdx.x; i < r.end; i += 2 * kThreads) {
    const int low = finite ? rounded(source(i, r.group), s.inverse, 7) : 1;
    const int high = finite ? rounded(source(i + 1, r.group), s.inverse, 7) : 1;
    values[i / 2] = static_cast<std::uint8_t>((low & 0xF) | (high & 0xF) << 4);
  }
  return s;
}

/// e <- beta * e + (1 - beta) * (h - q), with h from `source` and q its dequantized value; two passes,
/// because the error's own scale must be known first. The second recomputes the error: each element depends
/// only on its own old value, which the same thread reads and then replaces.
template <class Source>
__device__ void keep_error(const WithError<Source>& source, const ErrorFeedback& error, Scale s,
                           const Range& r) {
  const float old_scale = error.scales[r.group];
  const auto next = [&](std::int64_t i) {
    const float x = source(i, r.group);
    const float old = static_cast<float>(error.values[i]) * old_scale;
    const auto q = static_cast<float>(rounded(x, s.inverse, 7));
    return error.beta * old + (1 - error.beta) * (x - q * s.scale);
  };
  std::uint32_t most = 0;
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    most = max(most, __float_as_uint(next(i)) & 0x7FFFFFFFU);
  }
  // Its barriers are needed here too: quantize_group() read the old errors in pairs, so a thread read
  // elements that another one overwrites below.
  most = block_largest(most);
  const Scale e = scale_of(most, 127);
  const bool finite = most < 0x7F800000U;
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    error.values[i] = finite ? static_cast<std::int8_t>(rounded(next(i), e.inverse, 127)) : std::int8_t{0};
  }
  __syncthreads();  // every thread has read the old scale
  if (threadIdx.x == 0) error.scales[r.group] = finite ? e.scale : 0.0F;
}

template <class Source>
__device__ void quantize_with(const Source& source, std::uint8_t* values, float* scales, std::int64_t n,
                              std::int64_t group_elems, const ErrorFeedback& error) {
  const Range r = range_of(n, group_elems);
  // A kernel argument: all threads take the same branch.
  if (error.values == nullptr) {
    quantize_group(source, values, scales, r);
  } else {
    // h = x + e is quantized; the new error is stored in e.
    const WithError<Source> corrected{source, error.values, error.scales};
    const Scale s = quantize_group(corrected, values, scales, r);
    keep_error(corrected, error, s, r);
  }
}

/// values[n / 2], two int4 per byte, and scales[groups] of x[n]; one block per group.
template <class T>
__global__ void __launch_bounds__(kThreads)
    int4_kernel(std::uint8_t* values, float* scales, const T* x, std::int64_t n, std::int64_t group_elems,
                const ErrorFeedback error) {
  quantize_with(ArraySource<T>{x}, values, scales, n, group_elems, error);
}
/// The same for factor * the sum of `count` int4 arrays of n elements, which is never stored.
__global__ void __launch_bounds__(kThreads)
    sum_int4_kernel(std::uint8_t* values, float* scales, const __grid_constant__ Sources sources,
                    std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                    const ErrorFeedback error) {
  quantize_with(SumSource{&sources, count, factor}, values, scales, n, group_elems, error);
}
/// x[n] = factor * the sum of `count` int4 arrays of n elements, in index order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    from_int4_kernel(T* x, const __grid_constant__ Sources sources, std::uint32_t count, std::int64_t n,
                     std::int64_t group_elems, float factor) {
  const Range r = range_of(n, group_elems);
  const SumSource source{&sources, count, factor};
  for (std::int64_t i = r.begin + threadIdx.x; i < r.end; i += kThreads) {
    x[i] = from_float<T>(source(i, r.group));
  }
}

// One block per group.
unsigned groups_of(std::int64_t n, std::int64_t group_elems) {
  return static_cast<unsigned>((n + group_elems - 1) / group_elems);
}

// Throws KernelError for more sources than fit into a kernel's arguments.
Sources by_value(const char* kernel, const Int4Source* sources, std::uint32_t count) {
  if (count > kMaxSources) {
    throw_bad_argument(kernel, "count is " + std::to_string(count) + "; the CUDA kernel sums at most " +
                                   std::to_string(kMaxSources) + " arrays");
  }
  Sources all{};
  std::copy_n(sources, count, all.at);
  return all;
}

}  // namespace

void quantize_int8(const Context& on, std::int8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems) {
  if (n == 0) return;
  with_type("quantize_int8", x.type, [&](auto tag) {
    using T = decltype(tag);
    int8_kernel<<<groups_of(n, group_elems), kThreads, 0, stream_of(on)>>>(
        values, scales, static_cast<const T*>(x.data), n, group_elems);
  });
  check_launch("quantize_int8");
}

void dequantize_int8(const Context& on, Ptr x, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  if (n == 0) return;
  with_type("dequantize_int8", x.type, [&](auto tag) {
    using T = decltype(tag);
    from_int8_kernel<<<groups_of(n, group_elems), kThreads, 0, stream_of(on)>>>(
        static_cast<T*>(x.data), values, scales, n, group_elems);
  });
  check_launch("dequantize_int8");
}

void quantize_int4(const Context& on, std::uint8_t* values, float* scales, ConstPtr x, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error) {
  if (n == 0) return;
  with_type("quantize_int4", x.type, [&](auto tag) {
    using T = decltype(tag);
    int4_kernel<<<groups_of(n, group_elems), kThreads, 0, stream_of(on)>>>(
        values, scales, static_cast<const T*>(x.data), n, group_elems, error);
  });
  check_launch("quantize_int4");
}

void requantize_int4(const Context& on, std::uint8_t* values, float* scales, const Int4Source* sources,
                     std::uint32_t count, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error) {
  if (n == 0) return;
  const Sources all = by_value("requantize_int4", sources, count);
  sum_int4_kernel<<<groups_of(n, group_elems), kThreads, 0, stream_of(on)>>>(values, scales, all, count, n,
                                                                             group_elems, factor, error);
  check_launch("requantize_int4");
}

void dequantize_sum_int4(const Context& on, Ptr x, const Int4Source* sources, std::uint32_t count,
                         std::int64_t n, std::int64_t group_elems, float factor) {
  if (n == 0) return;
  const Sources all = by_value("dequantize_sum_int4", sources, count);
  with_type("dequantize_sum_int4", x.type, [&](auto tag) {
    using T = decltype(tag);
    from_int4_kernel<<<groups_of(n, group_elems), kThreads, 0, stream_of(on)>>>(
        static_cast<T*>(x.data), all, count, n, group_elems, factor);
  });
  check_launch("dequantize_sum_int4");
}

}  // namespace shardscope::kernels::cuda
