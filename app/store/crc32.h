// CRC-32C (Castagnoli) of recorded bytes: chunks, tables and rows of a recording have one, so that a
// damaged copy is detected before anything is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardscope::store {

/// CRC-32C of `bytes` bytes; `seed` continues an earlier sum (0 to begin). By the processor's instruction
/// where it has one (x86-64 with SSE 4.2). Source: RFC 3720, appendix B.4.
[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed = 0) noexcept;
[[nodiscard]] inline std::uint32_t crc32c(std::string_view text, std::uint32_t seed = 0) noexcept {
  return crc32c(text.data(), text.size(), seed);
}

/// The same on any processor, by table: five times slower.
[[nodiscard]] std::uint32_t crc32c_by_tables(const void* data, std::size_t bytes,
                                             std::uint32_t seed = 0) noexcept;

}  // namespace shardscope::store
