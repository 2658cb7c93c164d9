// The checksum of everything that is written to a file or compared between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::base {

/// XXH3-64 (github.com/Cyan4973/xxHash, seed 0).
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace shardscope::base
