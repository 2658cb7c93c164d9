// Symmetric quantization in groups, two passes over each: the largest magnitude, then the values. Input is
// read in blocks that stay in the first-level cache: an array of any type, or the sum of int4 arrays computed
// on the fly, optionally with error feedback.
//
// A source has block(first element, elements, group, buffer): returns the elements as floats, in `buffer` or
// in place. At most kBlock elements, all of one group. Each pass recomputes them: groups may have any length,
// so their floats are not stored. With error feedback there are four passes.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, to nearest even

/// Largest magnitude of a block as the bits of a float, which order like the values; NaN is above infinity.
[[gnu::always_inline]] inline std::uint32_t largest(const float* x, std::int64_t n) {
  vu most{};
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    const vu magnitude = as_u(load(x + i)) & 0x7FFFFFFFU;
    most = magnitude > most ? magnitude : most;
  }
  std::uint32_t result = 0;
  for (; i < n; ++i) {
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7FFFFFFFU;
    result = bits > result ? bits : result;
  }
  // A maximum of integers: the order of comparison does not matter.
  for (std::int64_t lane = 0; lane < W; ++lane) result = most[lane] > result ? most[lane] : result;
  return result;
}

// x is about value * scale; value is an integer of magnitude up to `levels` (127 for int8, 7 for int4).
struct Scale {
  float scale;
  float inverse;  ///< 0 for a group of zeros or of non-finite values
};
SHARDSCOPE_INLINE Scale scale_of(std::uint32_t magnitude_bits, float levels) {
  float magnitude = 0;
  __builtin_memcpy(&magnitude, &magnitude_bits, sizeof magnitude);
  const float scale = magnitude / levels;
  // Infinity or NaN, and so is the scale.
  if (magnitude_bits >= 0x7F800000U) return {scale, 0.0F};
  // A subnormal scale has no finite inverse: such a group is quantized to zero.
  return scale >= 0x1p-126F ? Scale{scale, 1.0F / scale} : Scale{0.0F, 0.0F};
}

/// round(x * inverse) as integers, clamped to +-levels: the rounded inverse could exceed it by one.
SHARDSCOPE_INLINE vi rounded(vf x, float inverse, float levels) {
  const vf value = max(set1(-levels), min(set1(levels), x * inverse));
  // 0x4B400000: the bits of kMagic. The addition leaves the integer in the lowest bits.
  return reinterpret_cast<vi>(value + kMagic) - 0x4B400000;
}
// The same for one element, with the same rounding.
SHARDSCOPE_INLINE std::int32_t rounded_one(float x, float inverse, float levels) {
  float value = x * inverse;
  value = value < levels ? value : levels;
  value = value > -levels ? value : -levels;
  const float shifted = value + kMagic;
  std::int32_t bits = 0;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  return bits - 0x4B400000;
}

/// Rounds a block to integers.
[[gnu::always_inline]] inline void round_block(std::int32_t* out, const float* x, std::int64_t n, Scale s,
                                               float levels) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    const vi q = rounded(load(x + i), s.inverse, levels);
    __builtin_memcpy(out + i, &q, sizeof q);
  }
  for (; i < n; ++i) out[i] = rounded_one(x[i], s.inverse, levels);
}

// Two values per byte, the even one in the low half; n is even. Negative values keep their lowest 4 bits.
[[gnu::always_inline]] inline void pack_int4(std::uint8_t* out, const std::int32_t* q, std::int64_t n) {
  for (std::int64_t i = 0; i < n / 2; ++i) {
    out[i] = static_cast<std::uint8_t>((q[2 * i] & 0xF) | (q[2 * i + 1] & 0xF) << 4);
  }
}
// (half ^ 8) - 8 sign-extends 4 bits.
[[gnu::always_inline]] inline void unpack_int4(float* out, const std::uint8_t* in, std::int64_t n,
                                               float scale) {
  for (std::int64_t i = 0; i < n / 2; ++i) {
    const std::int32_t byte = in[i];
    out[2 * i] = static_cast<float>(((byte & 0xF) ^ 8) - 8) * scale;
    out[2 * i + 1] = static_cast<float>((byte >> 4 ^ 8) - 8) * scale;
  }
}

/// An array of any type.
struct ArraySource {
  const void* x;
  DType type;
  [[gnu::always_inline]] const float* block(std::int64_t at, std::int64_t n, std::int64_t /*group*/,
                                            float* buffer) const {
    return stage_in(x, type, at, n, buffer);
  }
};

/// factor * sum of int4 arrays, dequantized and added in index order; blocks are within a group. Elements and
/// groups are relative to first_elem and first_group, the start of a thread's part of the sources.
struct SumSource {
  const Int4Source* sources;
  std::uint32_t count;
  std::int64_t first_elem, first_group;
  float factor;
  [[gnu::always_inline]] const float* block(std::int64_t at, std::int64_t n, std::int64_t group,
                                            float* buffer) const {
    // 4 KiB per buffer, on the thread's stack.
    alignas(64) float term[kBlock];
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      unpack_int4(term, sources[k].values + (first_elem + at) / 2, n, sources[k].scales[first_group + group]);
      for (std::int64_t i = 0; i < n; ++i) buffer[i] += term[i];
    }
    for (std::int64_t i = 0; i < n; ++i) buffer[i] *= factor;
    return buffer;
  }
};

/// h = x + e: another source plus the dequantized error of the previous call.
template <class Inner>
struct WithError {
  Inner inner;
  const ErrorFeedback& error;
  [[gnu::always_inline]] const float* block(std::int64_t at, std::int64_t n, std::int64_t group,
                                            float* buffer) const {
    alignas(64) float staged[kBlock];
    const float* x = inner.block(at, n, group, staged);
    const float scale = error.scales[group];
    for (std::int64_t i = 0; i < n; ++i) {
      buffer[i] = x[i] + static_cast<float>(error.values[at + i]) * scale;
    }
    return buffer;
  }
};

/// Bits of the largest magnitude among elements [begin, end), a group.
template <class Source>
[[gnu::always_inline]] inline std::uint32_t largest_of_group(const Source& source, std::int64_t begin,
                                                             std::int64_t end, std::int64_t group) {
  alignas(64) float buffer[kBlock];
  std::uint32_t most = 0;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = end - at < kBlock ? end - at : kBlock;
    const std::uint32_t here = largest(source.block(at, n, group, buffer), n);
    most = here > most ? here : most;
  }
  return most;
}

/// Stores the error of quantizing `h` to `q`. Two passes, because the error's own scale must be known first;
/// `h` is recomputed from the old error, which is replaced block by block in the second pass.
template <class Source>
[[gnu::always_inline]] inline void keep_error(const WithError<Source>& source, const ErrorFeedback& error,
                                              Scale s, std::int64_t begin, std::int64_t end,
                                              std::int64_t group) {
  alignas(64) float h[kBlock];
  alignas(64) float next[kBlock];
  alignas(64) std::int32_t q[kBlock];
  const float old_scale = error.scales[group];
  // next = beta e + (1 - beta) (h - q) of a block. `source` reads the old error too: both passes see it
  // unchanged, because the second replaces a block only after it has been computed, and no block reads
  // another's.
  const auto block_error = [&](std::int64_t at, std::int64_t n) {
    const float* x = source.block(at, n, group, h);
    round_block(q, x, n, s, 7);
    for (std::int64_t i = 0; i < n; ++i) {
      const float old = static_cast<float>(error.values[at + i]) * old_scale;
      next[i] = error.beta * old + (1 - error.beta) * (x[i] - static_cast<float>(q[i]) * s.scale);
    }
  };
  std::uint32_t most = 0;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = end - at < kBlock ? end - at : kBlock;
    block_error(at, n);
    const std::uint32_t here = largest(next, n);
    most = here > most ? here : most;
  }
  // The error is int8, with a scale of its own.
  const Scale e = scale_of(most, 127);
  // A non-finite error would never become finite again: it is reset.
  const bool finite = most < 0x7F800000U;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = end - at < kBlock ? end - at : kBlock;
    if (finite) {
      block_error(at, n);
      round_block(q, next, n, e, 127);
      for (std::int64_t i = 0; i < n; ++i) error.values[at + i] = static_cast<std::int8_t>(q[i]);
    } else {
      __builtin_memset(error.values + at, 0, static_cast<std::size_t>(n));
    }
  }
  // Last: the source uses the old scale until here.
  error.scales[group] = finite ? e.scale : 0.0F;
}

template <class Source>
[[gnu::always_inline]] inline Scale quantize_group(const Source& source, std::uint8_t* values, float* scale,
                                                   std::int64_t begin, std::int64_t end, std::int64_t group) {
  alignas(64) float buffer[kBlock];
  alignas(64) std::int32_t q[kBlock];
  // Pass 1: the largest magnitude. Pass 2: the values.
  const Scale s = scale_of(largest_of_group(source, begin, end, group), 7);
  *scale = s.scale;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = end - at < kBlock ? end - at : kBlock;
    round_block(q, source.block(at, n, group, buffer), n, s, 7);
    // Not finite: any nonzero integer keeps inf and NaN visible after the multiplication.
    if (!(s.scale < __builtin_inff())) {
      for (std::int64_t i = 0; i < n; ++i) q[i] = 1;
    }
    // A block starts at an even element: begin, kBlock and group_elems are even.
    pack_int4(values + at / 2, q, n);
  }
  return s;
}

template <class Source>
[[gnu::always_inline]] inline void quantize_groups(const Source& source, std::uint8_t* values, float* scales,
                                                   std::int64_t n, std::int64_t group_elems,
                                                   const ErrorFeedback& error) {
  for (std::int64_t begin = 0, group = 0; begin < n; begin += group_elems, ++group) {
    const std::int64_t end = begin + group_elems < n ? begin + group_elems : n;
    if (error.values == nullptr) {
      quantize_group(source, values, scales + group, begin, end, group);
    } else {
      // h = x + e is quantized; the new error is stored in e.
      const WithError<Source> corrected{source, error};
      const Scale s = quantize_group(corrected, values, scales + group, begin, end, group);
      keep_error(corrected, error, s, begin, end, group);
    }
  }
}

}  // namespace

// Group by group: the scale, then the values.
void quantize_int8(std::int8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                   std::int64_t group_elems) {
  alignas(64) float buffer[kBlock];
  alignas(64) std::int32_t q[kBlock];
  const ArraySource source{x, type};
  for (std::int64_t begin = 0, group = 0; begin < n; begin += group_elems, ++group) {
    const std::int64_t end = begin + group_elems < n ? begin + group_elems : n;
    const Scale s = scale_of(largest_of_group(source, begin, end, group), 127);
    scales[group] = s.scale;
    const bool finite = s.scale < __builtin_inff();
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t count = end - at < kBlock ? end - at : kBlock;
      round_block(q, source.block(at, count, group, buffer), count, s, 127);
      for (std::int64_t i = 0; i < count; ++i) {
        values[at + i] = finite ? static_cast<std::int8_t>(q[i]) : static_cast<std::int8_t>(1);
      }
    }
  }
}

// x = value * scale in fp32, rounded once to the type of x.
void dequantize_int8(void* x, DType type, const std::int8_t* values, const float* scales, std::int64_t n,
                     std::int64_t group_elems) {
  alignas(64) float buffer[kBlock];
  for (std::int64_t begin = 0, group = 0; begin < n; begin += group_elems, ++group) {
    const std::int64_t end = begin + group_elems < n ? begin + group_elems : n;
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t count = end - at < kBlock ? end - at : kBlock;
      float* out = stage_place(x, type, at, buffer);
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[at + i]) * scales[group];
      stage_out(x, type, at, count, out);
    }
  }
}

void quantize_int4(std::uint8_t* values, float* scales, const void* x, DType type, std::int64_t n,
                   std::int64_t group_elems, const ErrorFeedback& error) {
  quantize_groups(ArraySource{x, type}, values, scales, n, group_elems, error);
}

// `offset` is the start of this part in the sources; values, scales and error start with the part.
void requantize_int4(std::uint8_t* values, float* scales, const Int4Source* sources, std::uint32_t count,
                     std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor,
                     const ErrorFeedback& error) {
  const SumSource source{sources, count, offset, offset / group_elems, factor};
  quantize_groups(source, values, scales, n, group_elems, error);
}

void dequantize_sum_int4(void* x, DType type, const Int4Source* sources, std::uint32_t count,
                         std::int64_t offset, std::int64_t n, std::int64_t group_elems, float factor) {
  alignas(64) float buffer[kBlock];
  // A block of the sum is computed in place if x holds floats.
  const SumSource source{sources, count, offset, offset / group_elems, factor};
  for (std::int64_t begin = 0, group = 0; begin < n; begin += group_elems, ++group) {
    const std::int64_t end = begin + group_elems < n ? begin + group_elems : n;
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t here = end - at < kBlock ? end - at : kBlock;
      float* out = stage_place(x, type, at, buffer);
      source.block(at, here, group, out);
      stage_out(x, type, at, here, out);
    }
  }
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
