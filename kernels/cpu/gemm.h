// fp32 matrix products: by the instruction set's own kernel (simd/gemm.cpp) if it has one, else by oneDNN.
#pragma once

#include <cstdint>

namespace shardscope::kernels::cpu {

enum class Trans : std::uint8_t { no, yes };

/// Operation on finished sums while they are in the first-level cache. `operand` and `activation` are [m,n]
/// and do not overlap c.
enum class Finish : std::uint8_t {
  none,
  add,       ///< c += operand
  multiply,  ///< c *= operand
  gelu,      ///< activation = gelu(c), c = gelu'(c)
};

/// c[m,n] (+)= op(a)[m,k] op(b)[k,n] (+ bias[n] when not null), fp32, row-major with leading dimensions lda,
/// ldb, ldc of the stored (not transposed) matrices. Adding reads c. Errors: KernelError with
/// oneDNN's status and the shape.
/// Order of a sum: the product in blocks of depth with the bias in the first, then c; then the finish
/// operation.
struct Gemm {
  Trans trans_a = Trans::no, trans_b = Trans::no;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool add = false;
  int threads = 1;
  /// With a transposed a: the sums over k of the rows of op(a) are added to these m floats. Requires
  /// gemm_adds_row_sums().
  float* row_sums = nullptr;
  Finish finish = Finish::none;
  const float* operand = nullptr;
  float* activation = nullptr;
  std::int64_t ld_beside = 0;  ///< leading dimension of operand or activation
};
void gemm(const Gemm& shape, const float* a, const float* b, float* c, const float* bias);
/// Whether the product kernel can compute row sums.
[[nodiscard]] bool gemm_adds_row_sums() noexcept;
/// Whether MatmulPrecision::highest is set.
[[nodiscard]] bool sums_in_double() noexcept;

}  // namespace shardscope::kernels::cpu
