// A chunk whose checksums are made right, so that what lies behind them is reached too. The layout is that of
// docs/recording.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "app/store/crc32.h"

namespace shardscope::fuzz {

[[nodiscard]] inline std::vector<std::byte> sealed_chunk(std::string_view input) {
  const auto* const begin = reinterpret_cast<const std::byte*>(input.data());
  std::vector<std::byte> bytes(begin, begin + input.size());
  std::uint16_t version = 0;
  if (bytes.size() >= 6) std::memcpy(&version, bytes.data() + 4, sizeof version);
  const std::size_t header = version <= 2 ? 88 : version == 3 ? 120 : 136;
  if (bytes.size() <= header) return bytes;
  std::uint32_t states = 0;  // compressed bytes of the section before the others
  if (version >= 4) {
    std::memcpy(&states, bytes.data() + 112, sizeof states);
    states = std::min(states, static_cast<std::uint32_t>(bytes.size() - header));
    std::memcpy(bytes.data() + 112, &states, sizeof states);
    const std::uint32_t sum = store::crc32c(bytes.data() + header, states);
    std::memcpy(bytes.data() + 116, &sum, sizeof sum);
  }
  const auto compressed = static_cast<std::uint32_t>(bytes.size() - header - states);
  std::memcpy(bytes.data() + header - 12, &compressed, sizeof compressed);
  const std::uint32_t body = store::crc32c(bytes.data() + header + states, compressed);
  std::memcpy(bytes.data() + header - 8, &body, sizeof body);
  const std::uint32_t head = store::crc32c(bytes.data(), header - 4);
  std::memcpy(bytes.data() + header - 4, &head, sizeof head);
  return bytes;
}

}  // namespace shardscope::fuzz
