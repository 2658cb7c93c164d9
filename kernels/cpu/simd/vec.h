// One vector of floats on three instruction sets. Only for the files of this folder, which are compiled once
// per instruction set with SHARDSCOPE_ISA naming the namespace. Everything is static and inline: no shared
// symbol may be emitted here that another instruction set's object would then call.
//
// [Note: body and tail] Every loop runs on whole vectors; the last, partial one is loaded with zero padding
// and stored partially. So every element is computed by the same instructions wherever a range begins or
// ends, and no result depends on alignment.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

#define SHARDSCOPE_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
constexpr std::int64_t W = 16;
#elif defined(__AVX2__)
constexpr std::int64_t W = 8;
#else
constexpr std::int64_t W = 4;
#endif

// W floats, int32, uint32 and uint16 in a register; `_u`: the same in memory, aligned only to an element.
using vf = float __attribute__((vector_size(W * 4)));
using vi = std::int32_t __attribute__((vector_size(W * 4)));
using vu = std::uint32_t __attribute__((vector_size(W * 4)));
using vh = std::uint16_t __attribute__((vector_size(W * 2)));
using vf_u = float __attribute__((vector_size(W * 4), aligned(4), may_alias));
using vh_u = std::uint16_t __attribute__((vector_size(W * 2), aligned(2), may_alias));

/// x - 0 keeps the sign of -0, which x + 0 would lose.
SHARDSCOPE_INLINE vf set1(float x) { return x - vf{}; }
SHARDSCOPE_INLINE vu as_u(vf x) { return reinterpret_cast<vu>(x); }
SHARDSCOPE_INLINE vf as_f(vu x) { return reinterpret_cast<vf>(x); }

/// a * b + c, fused if the instruction set can: one rounding on AVX2 and AVX-512, two on the baseline. The
/// compiler does not fuse by itself (-ffp-contract=off).
SHARDSCOPE_INLINE vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<vf>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}

/// Returns the second operand if either is NaN, so that max(lo, x) passes a NaN in x.
#if defined(__AVX512F__)
SHARDSCOPE_INLINE vf max(vf a, vf b) {
  return reinterpret_cast<vf>(_mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
SHARDSCOPE_INLINE vf min(vf a, vf b) {
  return reinterpret_cast<vf>(_mm512_min_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
#else
SHARDSCOPE_INLINE vf max(vf a, vf b) { return a > b ? a : b; }
SHARDSCOPE_INLINE vf min(vf a, vf b) { return a < b ? a : b; }
#endif

// Rounded to nearest on every instruction set.
SHARDSCOPE_INLINE vf sqrt(vf x) {
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(_mm512_sqrt_ps(reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
  return reinterpret_cast<vf>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
  return reinterpret_cast<vf>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#endif
}

/// Lane numbers 0, 1, ... as integers.
SHARDSCOPE_INLINE vi lane_index() {
  vi index{};
  for (std::int64_t i = 0; i < W; ++i) index[i] = static_cast<std::int32_t>(i);
  return index;
}

/// Sum and maximum over lanes, as a fixed tree: lanes W / 2 apart, then W / 4, ..., 1. The other half of the
/// lanes computes the same with swapped operands.
SHARDSCOPE_INLINE float sum(vf x) {
#pragma GCC unroll 4
  for (std::int32_t half = W / 2; half > 0; half /= 2) x += __builtin_shuffle(x, lane_index() ^ half);
  return x[0];
}
SHARDSCOPE_INLINE float max_lane(vf x) {
#pragma GCC unroll 4
  for (std::int32_t half = W / 2; half > 0; half /= 2) x = max(x, __builtin_shuffle(x, lane_index() ^ half));
  return x[0];
}

SHARDSCOPE_INLINE vf load(const float* p) { return *reinterpret_cast<const vf_u*>(p); }
SHARDSCOPE_INLINE void store(float* p, vf x) { *reinterpret_cast<vf_u*>(p) = x; }

/// The first n elements (0 < n < W), zero-padded.
SHARDSCOPE_INLINE vf load_partial(const float* p, std::int64_t n) {
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1U), p));
#else
  vf x{};
  __builtin_memcpy(&x, p, static_cast<std::size_t>(n) * 4);
  return x;
#endif
}
SHARDSCOPE_INLINE void store_partial(float* p, vf x, std::int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1U), reinterpret_cast<__m512>(x));
#else
  __builtin_memcpy(p, &x, static_cast<std::size_t>(n) * 4);
#endif
}

/// exp(x) to about 1 ulp; 0 below -104, infinity above 88.8, NaN stays NaN. Cody-Waite reduction by ln 2 in
/// two parts, then the degree-6 polynomial of Cephes' expf; 2^n is applied in two factors so that subnormal
/// results round and overflow becomes infinity.
SHARDSCOPE_INLINE vf exp(vf x) {
  // NaN is the second operand, so it passes both bounds.
  x = max(set1(-105.0F), x);
  x = min(set1(90.0F), x);
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  // n = round(x / ln 2), exactly: `shifted` holds it in its lowest bits.
  const vf shifted = fma(x, set1(1.44269504088896341F), set1(kMagic));
  const vf n = shifted - kMagic;
  // r = x - n ln 2 in two steps: the first constant has 9 significant bits, so n times it is exact.
  vf r = fma(n, set1(-0.693359375F), x);
  r = fma(n, set1(2.12194440e-4F), r);
  vf p = set1(1.9875691500e-4F);
  p = fma(p, r, set1(1.3981999507e-3F));
  p = fma(p, r, set1(8.3334519073e-3F));
  p = fma(p, r, set1(4.1665795894e-2F));
  p = fma(p, r, set1(1.6666665459e-1F));
  p = fma(p, r, set1(5.0000001201e-1F));
  p = fma(p, r * r, r) + 1.0F;
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(_mm512_scalef_ps(reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  // 0x4B400000: the bits of kMagic. 2^n is built in the exponent field; n goes from -151 to 130, so each
  // factor takes half.
  const vi whole = reinterpret_cast<vi>(shifted) - 0x4B400000;
  const vi half = whole >> 1;
  const vf a = reinterpret_cast<vf>((half + 127) << 23);
  const vf b = reinterpret_cast<vf>((whole - half + 127) << 23);
  return p * a * b;
#endif
}

/// 1 / x to 1 ulp, for finite, normal x whose reciprocal is normal too. A division would occupy one of the
/// two multiply units for 16 cycles.
SHARDSCOPE_INLINE vf reciprocal(vf x) {
#if defined(__AVX512F__)
  // 14 bits, then one step of Newton's method doubles them.
  const vf guess = reinterpret_cast<vf>(_mm512_rcp14_ps(reinterpret_cast<__m512>(x)));
  return fma(guess, fma(-x, guess, set1(1.0F)), guess);
#else
  return 1.0F / x;
#endif
}

/// exp(x) for |x| <= 87 in parts: polynomial * 2^exponent.
struct ScaledExp {
  vf polynomial, exponent, shifted;
};

/// The reduction multiplies by 1 / ln 2 in one multiply-add, which costs 2e-8 |x| of accuracy; then a minimax
/// polynomial of 2^r for |r| <= 1/2, to 2e-9.
SHARDSCOPE_INLINE ScaledExp scaled_exp(vf x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const vf log2_e = set1(1.44269504088896341F);
  const vf shifted = fma(x, log2_e, set1(kMagic));
  const vf n = shifted - kMagic;
  const vf r = fma(x, log2_e, -n);
  vf p = set1(1.5353362e-4F);
  p = fma(p, r, set1(1.33988739e-3F));
  p = fma(p, r, set1(9.61843692e-3F));
  p = fma(p, r, set1(5.55033237e-2F));
  p = fma(p, r, set1(2.40226477e-1F));
  p = fma(p, r, set1(6.93147182e-1F));
  return {fma(p, r, set1(1.0F)), n, shifted};
}

/// exp(x) to 1 ulp plus 2e-8 |x|, for |x| <= 87; NaN stays NaN.
SHARDSCOPE_INLINE vf exp_in_range(vf x) {
  const ScaledExp e = scaled_exp(x);
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(
      _mm512_scalef_ps(reinterpret_cast<__m512>(e.polynomial), reinterpret_cast<__m512>(e.exponent)));
#else
  // |x| <= 87 makes n at most 126 in magnitude: 2^n is a normal number, one factor suffices.
  return e.polynomial * reinterpret_cast<vf>((reinterpret_cast<vi>(e.shifted) - (0x4B400000 - 127)) << 23);
#endif
}

/// The same for a score minus the maximum, x <= 87: 0 below -87, where the result would be subnormal, which
/// costs a hundred times as much.
SHARDSCOPE_INLINE vf exp_of_score(vf x) {
  constexpr float kSmallest = -87.0F;
#if defined(__AVX512F__)
  const ScaledExp e = scaled_exp(x);
  // "Not less than": NaN counts as normal and passes.
  const __mmask16 normal =
      _mm512_cmp_ps_mask(reinterpret_cast<__m512>(x), _mm512_set1_ps(kSmallest), _CMP_NLT_UQ);
  return reinterpret_cast<vf>(_mm512_maskz_scalef_ps(normal, reinterpret_cast<__m512>(e.polynomial),
                                                     reinterpret_cast<__m512>(e.exponent)));
#else
  return x < kSmallest ? vf{} : exp_in_range(x);
#endif
}

// ---- storage types: conversion to and from a vector of floats, to nearest even
// --------------------------------
struct F32 {
  using Storage = float;
  SHARDSCOPE_INLINE vf load(const float* p) { return cpu::SHARDSCOPE_ISA::load(p); }
  SHARDSCOPE_INLINE void store(float* p, vf x) { cpu::SHARDSCOPE_ISA::store(p, x); }
};

struct BF16 {
  using Storage = std::uint16_t;
  SHARDSCOPE_INLINE vf load(const std::uint16_t* p) {
    const vh h = *reinterpret_cast<const vh_u*>(p);
    // bf16 is the upper half of an fp32: exact.
    return as_f(__builtin_convertvector(h, vu) << 16);
  }
  SHARDSCOPE_INLINE void store(std::uint16_t* p, vf x) {
    const vu bits = as_u(x);
    // Half of the last kept bit minus one, plus that bit: ties round to even.
    const vu rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    // NaN keeps its sign and upper payload and is made quiet; the addition could have carried it to infinity
    // or zero.
    const vu nan = (bits >> 16) | 0x40U;
    const vu result = (bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded;
    *reinterpret_cast<vh_u*>(p) = __builtin_convertvector(result, vh);
  }
};

struct F16 {
  using Storage = std::uint16_t;
  SHARDSCOPE_INLINE vf load(const std::uint16_t* p) {
#if defined(__AVX512F__)
    return reinterpret_cast<vf>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p))));
#elif defined(__AVX2__)
    return reinterpret_cast<vf>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p))));
#else
    const vu h = __builtin_convertvector(*reinterpret_cast<const vh_u*>(p), vu);
    const vu magnitude = h & 0x7FFFU;
    const vu sign = (h & 0x8000U) << 16;
    // Re-biases the exponent by an exact multiplication with 2^112, which also makes subnormals normal.
    const vu scaled = as_u(as_f(magnitude << 13) * 0x1p112F);
    const vu special = (magnitude << 13) | 0x7F800000U | (magnitude > 0x7C00U ? vu{} + 0x400000U : vu{});
    return as_f(sign | (magnitude >= 0x7C00U ? special : scaled));
#endif
  }
  SHARDSCOPE_INLINE void store(std::uint16_t* p, vf x) {
#if defined(__AVX512F__)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i_u*>(p),
        _mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__AVX2__)
    _mm_storeu_si128(
        reinterpret_cast<__m128i_u*>(p),
        _mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    const vu bits = as_u(x);
    const vu sign = (bits >> 16) & 0x8000U;
    const vu magnitude = bits & 0x7FFFFFFFU;
    // Normal results: re-bias the exponent and round to nearest even; a carry to infinity is correct.
    const vu normal = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
    // Subnormal results: adding 0.5 aligns the last kept bit with the float's last bit, so the adder rounds.
    const vu subnormal = as_u(as_f(magnitude) + 0.5F) - 0x3F000000U;
    // Quiet, with the upper payload bits. From 2^16 on everything is infinity: the largest f16 is 65504, and
    // values below 2^16 that round above it become infinity by the carry.
    const vu nan = 0x7E00U | (magnitude >> 13);
    vu result = magnitude < 0x38800000U ? subnormal : normal;
    result = magnitude >= 0x47800000U ? vu{} + 0x7C00U : result;
    result = magnitude > 0x7F800000U ? (nan & 0x7FFFU) : result;
    *reinterpret_cast<vh_u*>(p) = __builtin_convertvector(result | sign, vh);
#endif
  }
};

template <class T>
[[gnu::always_inline]] inline vf load_partial(const typename T::Storage* p, std::int64_t n) {
  // Through a whole vector, so that a tail is computed like the body; memory after the range is not
  // accessed.
  typename T::Storage lane[W] = {};
  __builtin_memcpy(lane, p, static_cast<std::size_t>(n) * sizeof(lane[0]));
  return T::load(lane);
}
template <class T>
[[gnu::always_inline]] inline void store_partial(typename T::Storage* p, vf x, std::int64_t n) {
  typename T::Storage lane[W];
  T::store(lane, x);
  __builtin_memcpy(p, lane, static_cast<std::size_t>(n) * sizeof(lane[0]));
}

/// Calls f with F32{}, BF16{} or F16{}. Does nothing for i8, which has no
/// arithmetic.
template <class F>
[[gnu::always_inline]] inline void with_type(DType type, F f) {
  switch (type) {
    case DType::f32:
      f(F32{});
      return;
    case DType::bf16:
      f(BF16{});
      return;
    case DType::f16:
      f(F16{});
      return;
    case DType::i8:
      return;
  }
}

/// dst[i] = convert(src[i]) between a storage type and float.
template <class T>
[[gnu::always_inline]] inline void to_float(float* dst, const typename T::Storage* src, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) store(dst + i, T::load(src + i));
  if (i < n) store_partial(dst + i, load_partial<T>(src + i, n - i), n - i);
}
template <class T>
[[gnu::always_inline]] inline void from_float(typename T::Storage* dst, const float* src, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) T::store(dst + i, load(src + i));
  if (i < n) store_partial<T>(dst + i, load_partial(src + i, n - i), n - i);
}

/// Elements [offset, offset + n) as floats: the array itself if it holds floats, else converted into
/// `buffer`.
[[gnu::always_inline]] inline const float* stage_in(const void* data, DType type, std::int64_t offset,
                                                    std::int64_t n, float* buffer) {
  switch (type) {
    case DType::f32:
      return static_cast<const float*>(data) + offset;
    case DType::bf16:
      to_float<BF16>(buffer, static_cast<const std::uint16_t*>(data) + offset, n);
      return buffer;
    case DType::f16:
      to_float<F16>(buffer, static_cast<const std::uint16_t*>(data) + offset, n);
      return buffer;
    case DType::i8:
      break;
  }
  return buffer;
}
/// Destination of floats for elements from `offset`: the array itself, or `buffer` followed by stage_out.
[[gnu::always_inline]] inline float* stage_place(void* data, DType type, std::int64_t offset, float* buffer) {
  return type == DType::f32 ? static_cast<float*>(data) + offset : buffer;
}
// Converts and stores n floats of `buffer`; no effect for floats, which stage_place() wrote in place.
[[gnu::always_inline]] inline void stage_out(void* data, DType type, std::int64_t offset, std::int64_t n,
                                             const float* buffer) {
  switch (type) {
    case DType::f32:
      return;
    case DType::bf16:
      from_float<BF16>(static_cast<std::uint16_t*>(data) + offset, buffer, n);
      return;
    case DType::f16:
      from_float<F16>(static_cast<std::uint16_t*>(data) + offset, buffer, n);
      return;
    case DType::i8:
      return;
  }
}

/// Elements converted at a time; a few such blocks stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

}  // namespace
}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
