#include "app/store/chunk.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "app/store/bytes.h"
#include "app/store/chunk_columns.h"
#include "app/store/crc32.h"
#include "app/store/scratch.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;

constexpr std::uint32_t kMagic = 0x4B43535AU;  // "ZSCK"
constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kHeaderBytes = 120;
/// Versions 1 (no number of parts) and 2: without shed_before, lost_between and where events are missing.
constexpr std::size_t kOldHeaderBytes = 88;
constexpr std::size_t kMaxEvents = std::size_t{1} << 22;
constexpr std::size_t kMaxColumnsBytes = kMaxEvents * 64;
constexpr int kZstdLevel = 3;

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

/// The header of an encoded chunk, checked, and the chunk's fields that it holds.
struct Header {
  Chunk chunk;
  std::size_t bytes = 0;
  std::uint32_t count = 0, columns_bytes = 0, packed = 0;
  std::int64_t begin = 0, end = 0;
};

Header read_header(const std::byte* data, std::size_t bytes) {
  ByteReader reader(data, bytes, "header");
  if (reader.fixed<std::uint32_t>() != kMagic) throw std::runtime_error("chunk: does not begin like a chunk");
  const auto version = reader.fixed<std::uint16_t>();
  Header header;
  header.bytes = version <= 2 ? kOldHeaderBytes : kHeaderBytes;
  if (bytes < header.bytes) {
    throw std::runtime_error("chunk: " + std::to_string(bytes) + " bytes, fewer than its header of " +
                             std::to_string(header.bytes));
  }
  // The checksum before the version is believed: a flipped bit must not read as "newer version".
  ByteReader sum(data + header.bytes - 4, 4, "header");
  if (sum.fixed<std::uint32_t>() != crc32c(data, header.bytes - 4)) {
    throw std::runtime_error("chunk: header checksum does not match");
  }
  if (version == 0 || version > kVersion) {
    throw std::runtime_error("chunk: version " + std::to_string(version) + ", this program reads up to " +
                             std::to_string(kVersion));
  }
  const auto more_parts = reader.fixed<std::uint16_t>();
  Chunk& chunk = header.chunk;
  if (version >= 2) chunk.parts = std::uint32_t{more_parts} + 1;
  chunk.rank = reader.fixed<std::uint32_t>();
  header.count = reader.fixed<std::uint32_t>();
  chunk.sequence = reader.fixed<std::uint64_t>();
  chunk.clock_offset_ns = reader.fixed<std::int64_t>();
  chunk.clock_residual_ns = reader.fixed<std::int64_t>();
  chunk.dropped_before = reader.fixed<std::uint64_t>();
  chunk.lost_before = reader.fixed<std::uint64_t>();
  header.begin = reader.fixed<std::int64_t>();
  header.end = reader.fixed<std::int64_t>();
  if (version >= 3) {
    chunk.shed_before = reader.fixed<std::uint64_t>();
    chunk.lost_between = reader.fixed<std::uint64_t>();
    chunk.missing_begin_ns = reader.fixed<std::int64_t>();
    chunk.missing_end_ns = reader.fixed<std::int64_t>();
  }
  header.columns_bytes = reader.fixed<std::uint32_t>();
  header.packed = reader.fixed<std::uint32_t>();
  const auto payload_sum = reader.fixed<std::uint32_t>();
  if (header.packed != bytes - header.bytes) {
    throw std::runtime_error("chunk: holds " + std::to_string(bytes - header.bytes) +
                             " bytes of columns, its header says " + std::to_string(header.packed));
  }
  if (payload_sum != crc32c(data + header.bytes, header.packed)) {
    throw std::runtime_error("chunk: column checksum does not match");
  }
  return header;
}

}  // namespace

Chunk::Times Chunk::times() const noexcept {
  if (events.empty()) return {};
  Times out{INT64_MAX, INT64_MIN};
  for (const Event& event : events) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    out.begin_ns = std::min(out.begin_ns, at);
    out.end_ns = std::max(out.end_ns, at);
  }
  return out;
}

std::vector<std::byte> Chunk::encode() const {
  if (parts == 0 || parts > kMaxParts) {
    throw std::runtime_error("chunk: stands for " + std::to_string(parts) + " chunks; 1 to " +
                             std::to_string(kMaxParts) + " can be");
  }
  if (events.size() > kMaxEvents) {
    throw std::runtime_error("chunk: " + std::to_string(events.size()) + " events, more than the limit of " +
                             std::to_string(kMaxEvents) + "; split it");
  }
  // Per thread: making a context costs more than compressing a small chunk.
  thread_local Scratch scratch;
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  const std::span<const std::byte> columns = encode_columns(events);
  const std::size_t room = ZSTD_compressBound(columns.size());
  std::byte* const packed_columns = scratch.room(room);
  const std::size_t packed =
      ZSTD_compressCCtx(context.get(), packed_columns, room, columns.data(), columns.size(), kZstdLevel);
  if (ZSTD_isError(packed) != 0) {
    throw std::runtime_error(std::string("chunk: cannot compress: ") + ZSTD_getErrorName(packed));
  }

  std::vector<std::byte> out;
  out.reserve(kHeaderBytes + packed);
  ByteWriter writer(out);
  writer.fixed(kMagic);
  writer.fixed(kVersion);
  writer.fixed(static_cast<std::uint16_t>(parts - 1));
  writer.fixed(rank);
  writer.fixed(static_cast<std::uint32_t>(events.size()));
  writer.fixed(sequence);
  writer.fixed(clock_offset_ns);
  writer.fixed(clock_residual_ns);
  writer.fixed(dropped_before);
  writer.fixed(lost_before);
  const Times held = times();
  writer.fixed(held.begin_ns);
  writer.fixed(held.end_ns);
  writer.fixed(shed_before);
  writer.fixed(lost_between);
  writer.fixed(missing_begin_ns);
  writer.fixed(missing_end_ns);
  writer.fixed(static_cast<std::uint32_t>(columns.size()));
  writer.fixed(static_cast<std::uint32_t>(packed));
  writer.fixed(crc32c(packed_columns, packed));
  writer.fixed(crc32c(out.data(), out.size()));
  static_assert(kHeaderBytes == 4 + 2 + 2 + 4 + 4 + 11 * 8 + 4 * 4);
  out.insert(out.end(), packed_columns, packed_columns + packed);
  return out;
}

void Chunk::verify(const std::byte* data, std::size_t bytes) { (void)read_header(data, bytes); }

Chunk Chunk::decode(const std::byte* data, std::size_t bytes) {
  Header header = read_header(data, bytes);
  Chunk& chunk = header.chunk;
  const auto [count, columns_bytes, packed] = std::tuple(header.count, header.columns_bytes, header.packed);
  // Every event takes at least a byte of tag and a byte of time, so a forged count cannot ask for memory
  // that the columns do not back.
  if (count > kMaxEvents || columns_bytes > kMaxColumnsBytes || columns_bytes / 2 < count) {
    throw std::runtime_error("chunk: " + std::to_string(count) + " events in " +
                             std::to_string(columns_bytes) + " bytes of columns cannot be");
  }
  std::vector<std::byte> columns(columns_bytes);
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  const std::size_t unpacked =
      ZSTD_decompressDCtx(context.get(), columns.data(), columns.size(), data + header.bytes, packed);
  if (ZSTD_isError(unpacked) != 0) {
    throw std::runtime_error(std::string("chunk: cannot decompress: ") + ZSTD_getErrorName(unpacked));
  }
  if (unpacked != columns_bytes) throw std::runtime_error("chunk: columns are shorter than the header says");
  chunk.events = decode_columns(columns.data(), columns.size(), count);
  if (const Times held = chunk.times(); held.begin_ns != header.begin || held.end_ns != header.end) {
    throw std::runtime_error("chunk: times of its events are not those of its header");
  }
  return std::move(chunk);
}

}  // namespace shardscope::store
