// Products of bf16 operands in the CPU's own bf16 dot products, by oneDNN.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"
#include "kernels/types.h"

namespace shardscope::kernels::cpu {

/// Whether these take less time than fp32 products of converted operands: on AMD since Zen 4, where VDPBF16PS
/// does two multiply-adds a lane at the rate of one FMA. On Intel it has half FMA's rate, and what is faster
/// there, AMX, some virtual machines announce and trap. Not where another instruction set was forced or
/// products are summed in double.
[[nodiscard]] bool bf16_products_pay() noexcept;

/// As gemm() without row sums and with nothing finished: operands in bf16, sums in fp32, c in fp32 or bf16,
/// which is rounded once, after the bias and what c held are added. Subnormal operands count as zero. The
/// order of a sum is oneDNN's for the shape. Errors: KernelError with oneDNN's status and the shape.
void gemm_bf16(const Gemm& shape, const std::uint16_t* a, const std::uint16_t* b, Ptr c, const float* bias);

}  // namespace shardscope::kernels::cpu
