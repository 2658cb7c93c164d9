// Products of bf16 operands with the CPU's bf16 dot-product instructions, by oneDNN.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"
#include "kernels/types.h"

namespace shardscope::kernels::cpu {

/// Whether these are faster than fp32 products of converted operands: on AMD since Zen 4, where VDPBF16PS
/// does two multiply-adds per lane at the rate of one FMA. On Intel it has half the rate of FMA; AMX would be
/// faster there, but some virtual machines report it and trap. False if another instruction set was forced or
/// products are summed in double.
[[nodiscard]] bool bf16_products_pay() noexcept;

/// Like gemm() without row sums and finish operations: operands in bf16, sums in fp32, c in fp32 or bf16,
/// rounded once, after the bias and c's old value are added. Subnormal operands count as zero. The order of a
/// sum is oneDNN's for the shape. Errors: KernelError with oneDNN's status and the shape.
void gemm_bf16(const Gemm& shape, const std::uint16_t* a, const std::uint16_t* b, Ptr c, const float* bias);

}  // namespace shardscope::kernels::cpu
