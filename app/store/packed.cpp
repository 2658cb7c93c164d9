#include "app/store/packed.h"

#include <zstd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "app/store/bytes.h"
#include "app/store/crc32.h"
#include "app/store/zstd_contexts.h"

namespace shardscope::store {
namespace {

// u32 CRC, u32 size.
constexpr std::size_t kPackedHeaderBytes = 8;
// 256 MiB: a larger size in a header is rejected, because memory is allocated before decompression.
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
constexpr int kPackedLevel = 3;

}  // namespace

std::vector<std::byte> pack(const std::vector<std::byte>& bytes) {
  // Maximum size, so that one call suffices; truncated below.
  std::vector<std::byte> out(kPackedHeaderBytes + ZSTD_compressBound(bytes.size()));
  // Per thread: a context's tables are reused for each part.
  thread_local const Compressor context(ZSTD_createCCtx());
  const std::size_t packed =
      ZSTD_compressCCtx(context.get(), out.data() + kPackedHeaderBytes, out.size() - kPackedHeaderBytes,
                        bytes.data(), bytes.size(), kPackedLevel);
  if (ZSTD_isError(packed) != 0) {
    throw std::runtime_error(std::string("cannot compress: ") + ZSTD_getErrorName(packed));
  }
  out.resize(kPackedHeaderBytes + packed);
  std::vector<std::byte> header;
  ByteWriter writer(header);
  // Placeholder for the checksum. It covers the size and the frame, so it is written last.
  writer.fixed(std::uint32_t{0});
  writer.fixed(static_cast<std::uint32_t>(bytes.size()));
  std::copy(header.begin(), header.end(), out.begin());
  header.clear();
  writer.fixed(crc32c(out.data() + 4, out.size() - 4));
  std::copy(header.begin(), header.end(), out.begin());
  return out;
}

/// Cheap: the frame is not decompressed.
void verify_packed(const std::byte* data, std::size_t bytes) {
  if (bytes < kPackedHeaderBytes) throw std::runtime_error("is shorter than its header");
  ByteReader reader(data, kPackedHeaderBytes, "header");
  if (reader.fixed<std::uint32_t>() != crc32c(data + 4, bytes - 4)) {
    throw std::runtime_error("checksum does not match");
  }
}

std::vector<std::byte> unpack(const std::byte* data, std::size_t bytes) {
  verify_packed(data, bytes);
  ByteReader reader(data + 4, kPackedHeaderBytes - 4, "header");
  // As trustworthy as the checksum; a forged file with a valid one is detected below.
  const auto size = reader.fixed<std::uint32_t>();
  if (size > kMaxBytes) throw std::runtime_error("says that it is larger than it can be");
  std::vector<std::byte> out(size);
  thread_local const Decompressor context(ZSTD_createDCtx());
  const std::size_t unpacked = ZSTD_decompressDCtx(context.get(), out.data(), out.size(),
                                                   data + kPackedHeaderBytes, bytes - kPackedHeaderBytes);
  if (ZSTD_isError(unpacked) != 0) {
    throw std::runtime_error(std::string("cannot decompress: ") + ZSTD_getErrorName(unpacked));
  }
  // A frame larger than `size` is an error above: zstd does not write past `out`.
  if (unpacked != size) throw std::runtime_error("is shorter than its header says");
  return out;
}

}  // namespace shardscope::store
