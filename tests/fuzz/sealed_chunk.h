// A chunk whose checksums are made right, so that what lies behind them is reached too. The layout is that of
// docs/recording.md.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "app/store/crc32.h"

namespace shardscope::fuzz {

[[nodiscard]] inline std::vector<std::byte> sealed_chunk(std::string_view input) {
  constexpr std::size_t kHeader = 88, kBytesAt = 76, kBodyAt = 80, kHeadAt = 84;
  const auto* const begin = reinterpret_cast<const std::byte*>(input.data());
  std::vector<std::byte> bytes(begin, begin + input.size());
  if (bytes.size() <= kHeader) return bytes;
  const auto compressed = static_cast<std::uint32_t>(bytes.size() - kHeader);
  std::memcpy(bytes.data() + kBytesAt, &compressed, sizeof compressed);
  const std::uint32_t body = store::crc32c(bytes.data() + kHeader, compressed);
  std::memcpy(bytes.data() + kBodyAt, &body, sizeof body);
  const std::uint32_t head = store::crc32c(bytes.data(), kHeadAt);
  std::memcpy(bytes.data() + kHeadAt, &head, sizeof head);
  return bytes;
}

}  // namespace shardscope::fuzz
