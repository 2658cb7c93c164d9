// Scratch memory of kernels whose contract has no scratch argument (matrix products, conversions of small
// arrays). One block per thread and slot, grown to the largest request and kept, so that a steady state
// allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::kernels::cpu {

/// Uses of a block; two uses that overlap in time must have different slots.
enum class Slot : std::uint8_t {
  matrix_a,    ///< linear.cpp: a block of activations or gradients as floats
  matrix_b,    ///< linear.cpp: weights or activations as floats
  matrix_c,    ///< linear.cpp: an fp32 result before it is rounded
  packed,      ///< gemm.cpp: packed operands of a product
  row,         ///< rows as floats: layer norm, losses, embedding
  columns,     ///< linear.cpp: column sums and their parts
  parameters,  ///< weights and biases as floats
  index,       ///< embedding.cpp: positions grouped by row
  count
};

/// At least `bytes` bytes, 64-byte aligned, uninitialised, valid on this thread until its next request for
/// this slot. Throws std::bad_alloc.
[[nodiscard]] void* workspace(Slot slot, std::size_t bytes);
[[nodiscard]] inline float* workspace_floats(Slot slot, std::int64_t n) {
  return static_cast<float*>(workspace(slot, static_cast<std::size_t>(n) * sizeof(float)));
}

}  // namespace shardscope::kernels::cpu
