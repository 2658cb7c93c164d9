#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/error.h"

namespace shardscope::kernels::cpu {
namespace {

/// Compares bits: sign, an exponent of all ones, and a mantissa, which is 0 for an infinity.
template <class Bits>
void count_bits(NotFiniteCount* counts, const void* x, std::int64_t n, Bits sign, Bits infinity) {
  const auto* bits = static_cast<const Bits*>(x);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto size = static_cast<Bits>(bits[i] & static_cast<Bits>(~sign));
    counts->infinite += size == infinity ? 1 : 0;
    counts->nan += size > infinity ? 1 : 0;
  }
}

}  // namespace

void adamw_step(int threads, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings) {
  const AdamWScalars scalars = adamw_scalars(settings);
  // Element-wise: bits do not depend on the partitioning.
  parallel_ranges(threads, n, 1024, 1 << 16, [&](std::int64_t begin, std::int64_t end, int) {
    vector_kernels().adamw(master + begin, m + begin, v + begin,
                           param16.data == nullptr ? nullptr : at(param16.data, size_of(param16.type), begin),
                           param16.type, at(grad.data, size_of(grad.type), begin), grad.type, end - begin,
                           scalars);
  });
}

void squared_norm(double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  // On one thread: the order of the sum must not depend on `threads`.
  std::uint32_t found = 0;
  *sum += vector_kernels().squared_norm(&found, x.data, x.type, n);
  *bad |= found;
}

void count_not_finite(NotFiniteCount* counts, ConstPtr x, std::int64_t n) {
  switch (x.type) {
    case DType::f32:
      return count_bits<std::uint32_t>(counts, x.data, n, 0x80000000U, 0x7F800000U);
    case DType::bf16:
      return count_bits<std::uint16_t>(counts, x.data, n, 0x8000U, 0x7F80U);
    case DType::f16:
      return count_bits<std::uint16_t>(counts, x.data, n, 0x8000U, 0x7C00U);
    default:
      throw_bad_argument("count_not_finite", "its elements must be of a floating-point type");
  }
}

}  // namespace shardscope::kernels::cpu
