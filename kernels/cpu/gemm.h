// fp32 matrix products: by the instruction set's own kernel (simd/gemm.cpp) where it has one, else by oneDNN.
#pragma once

#include <cstdint>

namespace shardscope::kernels::cpu {

enum class Trans : std::uint8_t { no, yes };

/// c[m,n] (+)= op(a)[m,k] op(b)[k,n] (+ bias[n] when not null), fp32, row-major with leading dimensions lda,
/// ldb, ldc of the stored (not transposed) matrices. Adding reads c. Errors: KernelError with
/// oneDNN's status and the shape.
/// The order of a sum: the product in blocks of depth with the bias in the first, then c, then `onto`.
struct Gemm {
  Trans trans_a = Trans::no, trans_b = Trans::no;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool add = false;
  int threads = 1;
  /// With a transposed a: gets the sums over k of the rows of op(a) added, m floats. Only where
  /// gemm_adds_row_sums().
  float* row_sums = nullptr;
  /// Added last, when not null: [m,n] with leading dimension ld_onto, not c.
  const float* onto = nullptr;
  std::int64_t ld_onto = 0;
};
void gemm(const Gemm& shape, const float* a, const float* b, float* c, const float* bias);
/// Whether products can be asked for row sums in passing.
[[nodiscard]] bool gemm_adds_row_sums() noexcept;

}  // namespace shardscope::kernels::cpu
