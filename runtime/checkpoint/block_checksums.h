// Checksums of a file by blocks, so that reading a part of a file verifies only its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::checkpoint {

inline constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

[[nodiscard]] constexpr std::size_t block_count(std::uint64_t bytes) noexcept {
  return static_cast<std::size_t>((bytes + kBlockBytes - 1) / kBlockBytes);
}
/// base::checksum of each block. Reads a file once, a block at a time; the last block may be short. Throws
/// CheckpointError with the path.
[[nodiscard]] std::vector<std::uint64_t> checksum_blocks(const std::string& path);

}  // namespace shardscope::checkpoint
