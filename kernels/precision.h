// Precision of the sums of matrix products, for the whole process.
#pragma once

#include <cstdint>

namespace shardscope::kernels {

enum class MatmulPrecision : std::uint8_t {
  native,   ///< fp32 sums in the library's order: fast
  highest,  ///< sums in double, rounded once: slow, and equal on every CPU
};

/// For comparisons with recorded runs: a ReLU whose input is within the rounding error of fp32 sums around
/// zero changes its sign with the order of summation, and an optimizer like Adam amplifies this to whole
/// steps. CPU only. Set it before the first product.
void set_matmul_precision(MatmulPrecision precision) noexcept;

}  // namespace shardscope::kernels
