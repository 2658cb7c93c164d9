#include "app/store/chunk.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "app/store/bytes.h"
#include "app/store/chunk_columns.h"
#include "app/store/chunk_identity.h"
#include "app/store/crc32.h"
#include "app/store/scratch.h"
#include "app/store/zstd_contexts.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;

// [Note: header of a chunk] kHeaderBytes, then the two sections; offsets in bytes, integers little-endian:
//     0 u32 magic            4 u16 version        6 u16 parts - 1       8 u32 rank         12 u32 events
//    16 u64 sequence        24 i64 clock offset  32 i64 clock residual
//    40 u64 dropped_before  48 u64 lost_before
//    56 i64 earliest event  64 i64 latest event, rank clock
//    72 u64 shed_before     80 u64 lost_between  88 i64 missing_begin  96 i64 missing_end
//   104 u32 events of the state; of their section 108 u32 size, 112 u32 compressed size, 116 u32 CRC
//   120 u32 size, 124 u32 compressed size, 128 u32 CRC of the others' section
//   132 u32 CRC of bytes 0 to 131
constexpr std::uint32_t kMagic = 0x4B43535AU;  // "ZSCK"
constexpr std::uint16_t kVersion = 4;
constexpr std::size_t kHeaderBytes = 136;
constexpr std::size_t kMaxEvents = std::size_t{1} << 22;
// At their longest tag index, time, three ids and two values of an event are 50 bytes, with a run's length
// and a tag of its own 60.
constexpr std::size_t kMaxColumnsBytes = kMaxEvents * 64;
/// Level 3 takes 1.6 % less space and 1.6 times as long: a collector compresses beside ranks that train.
constexpr int kZstdLevel = 1;
/// A smaller chunk is read completely as fast, and would compress worse in two pieces.
constexpr std::size_t kApartEvents = std::size_t{1} << 12;

/// Columns as stored in an encoded chunk.
/// bytes: decompressed size; packed_bytes and crc: of the stored zstd frame.
struct Section {
  std::size_t events = 0;
  std::uint32_t bytes = 0, packed_bytes = 0, crc = 0;
  const std::byte* packed = nullptr;
};

/// The checked header of an encoded chunk, and the chunk fields in it.
struct Header {
  Chunk chunk;
  std::size_t count = 0;
  Section states, others;
  std::int64_t begin = 0, end = 0;
};

/// Call before any memory is allocated for it.
void check(const Section& section) {
  if (section.crc != crc32c(section.packed, section.packed_bytes)) {
    throw std::runtime_error("chunk: column checksum does not match");
  }
  // Every event takes at least a byte of tag and a byte of time, so a forged count cannot allocate memory
  // that the columns do not back.
  if (section.bytes > kMaxColumnsBytes || section.bytes / 2 < section.events) {
    throw std::runtime_error("chunk: " + std::to_string(section.events) + " events in " +
                             std::to_string(section.bytes) + " bytes of columns cannot be");
  }
}

/// All checks that need no decompression. Each sum is in 64 bits and every size is compared with the bytes
/// available, so the sections' pointers stay inside [data, data + bytes).
Header read_header(const std::byte* data, std::size_t bytes) {
  ByteReader reader(data, bytes, "header");
  if (reader.fixed<std::uint32_t>() != kMagic) throw std::runtime_error("chunk: does not begin like a chunk");
  const auto version = reader.fixed<std::uint16_t>();
  Header header;
  if (bytes < kHeaderBytes) {
    throw std::runtime_error("chunk: " + std::to_string(bytes) + " bytes, fewer than its header of " +
                             std::to_string(kHeaderBytes));
  }
  // Check the checksum before the version: a flipped bit must not read as another version.
  ByteReader sum(data + kHeaderBytes - 4, 4, "header");
  if (sum.fixed<std::uint32_t>() != crc32c(data, kHeaderBytes - 4)) {
    throw std::runtime_error("chunk: header checksum does not match");
  }
  if (version != kVersion) {
    throw std::runtime_error("chunk: version " + std::to_string(version) + ", this program reads version " +
                             std::to_string(kVersion));
  }
  // Stored minus 1, so that 65,536 parts fit 16 bits.
  const auto more_parts = reader.fixed<std::uint16_t>();
  Chunk& chunk = header.chunk;
  chunk.parts = std::uint32_t{more_parts} + 1;
  chunk.rank = reader.fixed<std::uint32_t>();
  header.count = reader.fixed<std::uint32_t>();
  chunk.sequence = reader.fixed<std::uint64_t>();
  chunk.clock_offset_ns = reader.fixed<std::int64_t>();
  chunk.clock_residual_ns = reader.fixed<std::int64_t>();
  chunk.dropped_before = reader.fixed<std::uint64_t>();
  chunk.lost_before = reader.fixed<std::uint64_t>();
  header.begin = reader.fixed<std::int64_t>();
  header.end = reader.fixed<std::int64_t>();
  chunk.shed_before = reader.fixed<std::uint64_t>();
  chunk.lost_between = reader.fixed<std::uint64_t>();
  chunk.missing_begin_ns = reader.fixed<std::int64_t>();
  chunk.missing_end_ns = reader.fixed<std::int64_t>();
  Section& states = header.states;
  Section& others = header.others;
  states.events = reader.fixed<std::uint32_t>();
  states.bytes = reader.fixed<std::uint32_t>();
  states.packed_bytes = reader.fixed<std::uint32_t>();
  states.crc = reader.fixed<std::uint32_t>();
  others.bytes = reader.fixed<std::uint32_t>();
  others.packed_bytes = reader.fixed<std::uint32_t>();
  others.crc = reader.fixed<std::uint32_t>();
  const std::uint64_t packed = std::uint64_t{states.packed_bytes} + others.packed_bytes;
  if (packed != bytes - kHeaderBytes) {
    throw std::runtime_error("chunk: holds " + std::to_string(bytes - kHeaderBytes) +
                             " bytes of columns, its header says " + std::to_string(packed));
  }
  if (header.count > kMaxEvents || states.events > header.count) {
    throw std::runtime_error("chunk: " + std::to_string(header.count) + " events, " +
                             std::to_string(states.events) + " of them of the state, cannot be");
  }
  if (states.events == 0 && packed != others.packed_bytes) {
    throw std::runtime_error("chunk: holds columns of no event");
  }
  // Not negative: checked above.
  others.events = header.count - states.events;
  states.packed = data + kHeaderBytes;
  others.packed = states.packed + states.packed_bytes;
  return header;
}

/// Memory for the columns of this thread's call. Freed when large, so that one large chunk does
/// not occupy memory forever.
constexpr std::size_t kKeptRoom = std::size_t{16} << 20;
/// Two, since decode() of a whole chunk needs both sections at once.
Scratch& states_room() {
  thread_local Scratch scratch;
  return scratch;
}
Scratch& others_room() {
  thread_local Scratch scratch;
  return scratch;
}

/// For Chunk::recycle().
std::vector<Event>& events_room() {
  thread_local std::vector<Event> events;
  return events;
}

/// The section's columns, checked and decompressed into `room`.
/// Valid until the thread's next call with the same `room`.
std::span<const std::byte> unpacked(const Section& section, Scratch& room) {
  check(section);
  room.keep_at_most(kKeptRoom);
  std::byte* const columns = room.room(section.bytes);
  thread_local const Decompressor context(ZSTD_createDCtx());
  const std::size_t size =
      ZSTD_decompressDCtx(context.get(), columns, section.bytes, section.packed, section.packed_bytes);
  if (ZSTD_isError(size) != 0) {
    throw std::runtime_error(std::string("chunk: cannot decompress: ") + ZSTD_getErrorName(size));
  }
  // Longer ones do not get here: zstd does not write past section.bytes.
  if (size != section.bytes) throw std::runtime_error("chunk: columns are shorter than the header says");
  return {columns, size};
}

/// Returns the number of bytes written to `out`.
std::size_t compress(std::span<const std::byte> columns, std::byte* out, std::size_t room) {
  // Per thread: creating a context costs more than compressing a small chunk.
  thread_local const Compressor context(ZSTD_createCCtx());
  const std::size_t packed =
      ZSTD_compressCCtx(context.get(), out, room, columns.data(), columns.size(), kZstdLevel);
  if (ZSTD_isError(packed) != 0) {
    throw std::runtime_error(std::string("chunk: cannot compress: ") + ZSTD_getErrorName(packed));
  }
  return packed;
}

}  // namespace

/// Events are ordered by time within a lane only, hence the search.
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
  const bool apart = events.size() >= kApartEvents;
  const ChunkColumns columns = encode_columns(events, apart);
  // Space for the largest possible frames; the result is copied out below, so the thread's next call reuses
  // it.
  thread_local Scratch scratch;
  const std::size_t room = ZSTD_compressBound(columns.states.size());
  std::byte* const packed = scratch.room(room + ZSTD_compressBound(columns.others.size()));
  // The two frames are adjacent, so that they are copied out in one piece.
  const std::size_t states = columns.state_events == 0 ? 0 : compress(columns.states, packed, room);
  std::byte* const packed_others = packed + states;
  const std::size_t others =
      compress(columns.others, packed_others, ZSTD_compressBound(columns.others.size()));

  std::vector<std::byte> out;
  out.reserve(kHeaderBytes + states + others);
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
  writer.fixed(static_cast<std::uint32_t>(columns.state_events));
  writer.fixed(static_cast<std::uint32_t>(columns.states.size()));
  writer.fixed(static_cast<std::uint32_t>(states));
  writer.fixed(crc32c(packed, states));
  writer.fixed(static_cast<std::uint32_t>(columns.others.size()));
  writer.fixed(static_cast<std::uint32_t>(others));
  writer.fixed(crc32c(packed_others, others));
  // Last field of the header, over all before it; the sections have checksums of their own, so that one
  // can be read and verified alone.
  writer.fixed(crc32c(out.data(), out.size()));
  static_assert(kHeaderBytes == 4 + 2 + 2 + 4 + 4 + 11 * 8 + 8 * 4);
  out.insert(out.end(), packed, packed_others + others);
  return out;
}

/// Reads the header only.
ChunkIdentity identity_of(const std::byte* data, std::size_t bytes) {
  const Header header = read_header(data, bytes);
  const Chunk& chunk = header.chunk;
  return {.rank = chunk.rank,
          .parts = chunk.parts,
          .sequence = chunk.sequence,
          .events = header.count,
          .dropped_before = chunk.dropped_before,
          .lost_before = chunk.lost_before,
          .begin_ns = header.begin,
          .end_ns = header.end,
          .clock_offset_ns = chunk.clock_offset_ns,
          .clock_residual_ns = chunk.clock_residual_ns};
}

/// Checks the stored checksums of both sections; decodes no event.
void Chunk::verify(const std::byte* data, std::size_t bytes) {
  const Header header = read_header(data, bytes);
  check(header.states);
  check(header.others);
}

void Chunk::recycle(Chunk chunk) noexcept {
  if (chunk.events.capacity() * sizeof(Event) <= kKeptRoom) events_room() = std::move(chunk.events);
}

Chunk Chunk::decode(const std::byte* data, std::size_t bytes, Part part) {
  Header header = read_header(data, bytes);
  Chunk& chunk = header.chunk;
  const bool apart = header.states.events > 0;
  // The other section is neither checked nor decompressed.
  if (apart && part == Part::states) {
    chunk.events = decode_states(unpacked(header.states, states_room()), header.states.events,
                                 std::exchange(events_room(), {}));
    return std::move(chunk);
  }
  if (apart && part == Part::others) {
    chunk.events = decode_others(unpacked(header.others, others_room()), header.count, header.states.events,
                                 std::exchange(events_room(), {}));
    return std::move(chunk);
  }
  const std::span<const std::byte> states =
      apart ? unpacked(header.states, states_room()) : std::span<const std::byte>();
  const std::span<const std::byte> others = unpacked(header.others, others_room());
  chunk.events = decode_columns({states, others, header.states.events}, header.count);
  // Only for a whole chunk: the header's times are of all events.
  if (const Times held = chunk.times(); held.begin_ns != header.begin || held.end_ns != header.end) {
    throw std::runtime_error("chunk: times of its events are not those of its header");
  }
  return std::move(chunk);
}

}  // namespace shardscope::store
