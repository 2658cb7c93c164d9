#include "kernels/cpu/simd/tables.h"

// Two steps, so that the macro is expanded before it becomes a string.
#define SHARDSCOPE_STRING_OF(x) #x
#define SHARDSCOPE_STRING(x) SHARDSCOPE_STRING_OF(x)

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {

const VectorKernels kTable = {
    .name = SHARDSCOPE_STRING(SHARDSCOPE_ISA),
    .gemm = gemm,
    .gemm_scratch_floats = gemm_scratch_floats,
    .cast = cast,
    .scale = scale,
    .add = add,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .gelu_rows_slope = gelu_rows_slope,
    .multiply = multiply,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .add_bias = add_bias,
    .column_sums = column_sums,
    .layer_norm_forward = layer_norm_forward,
    .layer_norm_backward = layer_norm_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .attention_scratch_floats = attention_scratch_floats,
    .cross_entropy = cross_entropy,
    .mse = mse,
    .adamw = adamw,
    .add_abs = add_abs,
    .squared_norm = squared_norm,
    .reduce_sum = reduce_sum,
    .quantize_int8 = quantize_int8,
    .dequantize_int8 = dequantize_int8,
    .quantize_int4 = quantize_int4,
    .requantize_int4 = requantize_int4,
    .dequantize_sum_int4 = dequantize_sum_int4,
};

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
