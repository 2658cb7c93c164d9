// A checksummed, compressed part of a recording: u32 CRC-32C of the rest, u32 size uncompressed, a zstd
// frame.
#pragma once

#include <cstddef>
#include <vector>

namespace shardscope::store {

[[nodiscard]] std::vector<std::byte> pack(const std::vector<std::byte>& bytes);
/// Throws std::runtime_error when the checksum is wrong.
void verify_packed(const std::byte* data, std::size_t bytes);
/// Throws std::runtime_error when the checksum, the size or the frame is wrong.
[[nodiscard]] std::vector<std::byte> unpack(const std::byte* data, std::size_t bytes);

}  // namespace shardscope::store
