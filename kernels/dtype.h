// Element types, the only part of the kernels that configurations and file formats need. No dependencies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::kernels {

/// i8: quantized values (int8, or two int4 per byte). They can only be transferred and dequantized.
enum class DType : std::uint8_t { f32 = 0, bf16 = 1, f16 = 2, i8 = 3 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::f32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
      return 1;
  }
  return 0;
}

}  // namespace shardscope::kernels
