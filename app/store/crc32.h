// CRC-32C (Castagnoli) of recorded bytes: chunks, tables and rows of a recording have one, so that a
// damaged copy is detected before anything is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardscope::store {

/// CRC-32C of `bytes` bytes; `seed` continues an earlier sum (0 to begin). Source: RFC 3720, appendix B.4.
[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed = 0) noexcept;
[[nodiscard]] inline std::uint32_t crc32c(std::string_view text, std::uint32_t seed = 0) noexcept {
  return crc32c(text.data(), text.size(), seed);
}

}  // namespace shardscope::store
