#include "app/store/chunk.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "app/store/bytes.h"
#include "app/store/crc32.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::kNoId;

constexpr std::uint32_t kMagic = 0x4B43535AU;  // "ZSCK"
constexpr std::uint16_t kVersion = 2;          ///< 1 has no number of parts
constexpr std::size_t kHeaderBytes = 88;
constexpr std::size_t kMaxEvents = std::size_t{1} << 22;
constexpr std::size_t kMaxColumnsBytes = kMaxEvents * 64;
constexpr int kZstdLevel = 3;

// [Note: columns grouped by tag]
// A tag is one combination of kind, stream and code; a run has a few dozen. The tag column says, event by
// event, which tag comes; the time column holds differences between consecutive events. Every other
// field is stored tag by tag, as the difference from the event of the same tag before, because events of
// one tag resemble each other (the next module, the next gather) and their neighbours in time do not.
// A field that never changes within a tag (mostly kNoId) has its bit in the tag's mask unset and takes
// no bytes. v1 of memory events ("pool bytes after") is predicted from the event of the pool before.
struct Tag {
  std::uint32_t key = 0;
  std::uint8_t mask = 0;
  std::size_t count = 0;
};
constexpr std::size_t kFields = 5;  // a, b, c, v0, v1

std::uint32_t tag_key(const Event& event) noexcept {
  return static_cast<std::uint32_t>(event.kind) | static_cast<std::uint32_t>(event.stream) << 16 |
         static_cast<std::uint32_t>(event.code) << 24;
}
bool is_memory(std::uint32_t key) noexcept {
  const auto kind = static_cast<EventKind>(key & 0xFFFFU);
  return kind == EventKind::memory_alloc || kind == EventKind::memory_free;
}
/// Prediction of a memory event's v1: pool bytes before, plus or minus its own bytes. Wraps on garbage.
std::int64_t predict_pool(const Event& event, std::int64_t before) noexcept {
  const auto bytes = static_cast<std::uint64_t>(event.v0);
  const auto old = static_cast<std::uint64_t>(before);
  return static_cast<std::int64_t>(event.kind == EventKind::memory_alloc ? old + bytes : old - bytes);
}
std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t field(const Event& event, std::size_t f) noexcept {
  switch (f) {
    case 0:
      return event.a;
    case 1:
      return event.b;
    case 2:
      return event.c;
    case 3:
      return event.v0;
    default:
      return event.v1;
  }
}
void set_field(Event& event, std::size_t f, std::int64_t value) noexcept {
  switch (f) {
    case 0:
      event.a = static_cast<std::uint32_t>(value);
      return;
    case 1:
      event.b = static_cast<std::uint32_t>(value);
      return;
    case 2:
      event.c = static_cast<std::uint32_t>(value);
      return;
    case 3:
      event.v0 = value;
      return;
    default:
      event.v1 = value;
      return;
  }
}
/// What a field is before the first event of a tag.
std::int64_t initial(std::size_t f) noexcept { return f < 3 ? static_cast<std::int64_t>(kNoId) : 0; }

/// Difference as stored: ids wrap at 32 bits, so that kNoId and small ids are near each other.
std::int64_t difference(std::size_t f, std::int64_t value, std::int64_t before) noexcept {
  if (f >= 3) return minus(value, before);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) - static_cast<std::uint32_t>(before));
}
std::int64_t restored(std::size_t f, std::int64_t delta, std::int64_t before) noexcept {
  if (f >= 3) return plus(before, delta);
  return static_cast<std::uint32_t>(static_cast<std::uint32_t>(before) + static_cast<std::uint32_t>(delta));
}

/// Events in order of tag, stable; `order[i]` is the i-th event's place in the chunk.
struct Grouping {
  std::vector<Tag> tags;              ///< by first appearance
  std::vector<std::uint32_t> tag_of;  ///< by event
  std::vector<std::uint32_t> order;
  void sort() {
    std::vector<std::size_t> next(tags.size(), 0);
    std::size_t start = 0;
    for (std::size_t t = 0; t < tags.size(); ++t) {
      next[t] = start;
      start += tags[t].count;
    }
    order.resize(tag_of.size());
    for (std::size_t i = 0; i < tag_of.size(); ++i) order[next[tag_of[i]]++] = static_cast<std::uint32_t>(i);
  }
};

Grouping group(const std::vector<Event>& events) {
  Grouping grouping;
  std::unordered_map<std::uint32_t, std::uint32_t> index;
  grouping.tag_of.reserve(events.size());
  std::uint32_t last_key = 0;
  std::uint32_t last_tag = kNoId;
  for (const Event& event : events) {
    const std::uint32_t key = tag_key(event);
    if (last_tag == kNoId || key != last_key) {
      const auto [at, added] = index.try_emplace(key, static_cast<std::uint32_t>(grouping.tags.size()));
      if (added) grouping.tags.push_back({.key = key});
      last_key = key;
      last_tag = at->second;
    }
    ++grouping.tags[last_tag].count;
    grouping.tag_of.push_back(last_tag);
  }
  grouping.sort();
  return grouping;
}

/// Pool bytes after the memory event before, event by event in the chunk's order; 0 at a pool's first.
class PoolPrediction {
 public:
  std::int64_t expect(const Event& event) const noexcept { return predict_pool(event, last_[pool(event)]); }
  void saw(const Event& event) noexcept { last_[pool(event)] = event.v1; }

 private:
  static std::size_t pool(const Event& event) noexcept { return event.code >> 4; }
  std::array<std::int64_t, 16> last_{};
};

std::vector<std::byte> encode_columns(const std::vector<Event>& events) {
  std::vector<std::byte> out;
  out.reserve(events.size() * 6 + 256);
  ByteWriter writer(out);
  Grouping grouping = group(events);

  // Which fields change within each tag.
  std::size_t start = 0;
  for (Tag& tag : grouping.tags) {
    for (std::size_t f = 0; f < kFields; ++f) {
      for (std::size_t i = start; i < start + tag.count; ++i) {
        if (field(events[grouping.order[i]], f) != initial(f)) {
          tag.mask |= static_cast<std::uint8_t>(1U << f);
          break;
        }
      }
    }
    start += tag.count;
  }

  writer.varint(grouping.tags.size());
  for (const Tag& tag : grouping.tags) {
    writer.fixed(tag.key);
    writer.fixed(tag.mask);
  }
  for (const std::uint32_t tag : grouping.tag_of) writer.varint(tag);
  std::int64_t before = 0;
  for (const Event& event : events) {
    const auto now = static_cast<std::int64_t>(event.ticks);
    writer.varint(zigzag(minus(now, before)));
    before = now;
  }
  for (std::size_t f = 0; f < kFields; ++f) {
    std::size_t i = 0;
    for (const Tag& tag : grouping.tags) {
      const std::size_t end = i + tag.count;
      if ((tag.mask >> f & 1U) == 0 || (f == 4 && is_memory(tag.key))) {
        i = end;
        continue;
      }
      std::int64_t last = initial(f);
      for (; i < end; ++i) {
        const std::int64_t value = field(events[grouping.order[i]], f);
        writer.varint(zigzag(difference(f, value, last)));
        last = value;
      }
    }
  }
  PoolPrediction pools;
  for (const Event& event : events) {
    if (!is_memory(tag_key(event))) continue;
    writer.varint(zigzag(minus(event.v1, pools.expect(event))));
    pools.saw(event);
  }
  return out;
}

std::vector<Event> decode_columns(const std::byte* data, std::size_t bytes, std::size_t count) {
  ByteReader reader(data, bytes, "tag table");
  Grouping grouping;
  const std::uint64_t tags = reader.varint();
  if (tags > count) reader.fail("has more entries than the chunk has events");
  grouping.tags.resize(tags);
  for (Tag& tag : grouping.tags) {
    tag.key = reader.fixed<std::uint32_t>();
    tag.mask = reader.fixed<std::uint8_t>();
    if (tag.mask >= 1U << kFields) reader.fail("has an unknown field mask");
  }
  reader.now_reading("tag column");
  grouping.tag_of.resize(count);
  std::vector<Event> events(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t t = reader.varint();
    if (t >= tags) reader.fail("names a tag that is not in the table");
    grouping.tag_of[i] = static_cast<std::uint32_t>(t);
    Tag& tag = grouping.tags[t];
    ++tag.count;
    events[i].kind = static_cast<EventKind>(tag.key & 0xFFFFU);
    events[i].stream = static_cast<instrumentation::StreamId>(tag.key >> 16 & 0xFFU);
    events[i].code = static_cast<std::uint8_t>(tag.key >> 24);
  }
  grouping.sort();
  reader.now_reading("time column");
  std::int64_t now = 0;
  for (Event& event : events) {
    now = plus(now, unzigzag(reader.varint()));
    event.ticks = static_cast<std::uint64_t>(now);
  }
  static constexpr std::array<const char*, kFields> kNames = {"column a", "column b", "column c", "column v0",
                                                              "column v1"};
  for (std::size_t f = 0; f < kFields; ++f) {
    reader.now_reading(kNames[f]);
    std::size_t i = 0;
    for (const Tag& tag : grouping.tags) {
      const std::size_t end = i + tag.count;
      if ((tag.mask >> f & 1U) == 0 || (f == 4 && is_memory(tag.key))) {
        i = end;
        continue;
      }
      std::int64_t last = initial(f);
      for (; i < end; ++i) {
        last = restored(f, unzigzag(reader.varint()), last);
        set_field(events[grouping.order[i]], f, last);
      }
    }
  }
  reader.now_reading("pool column");
  PoolPrediction pools;
  for (Event& event : events) {
    if (!is_memory(tag_key(event))) continue;
    event.v1 = plus(pools.expect(event), unzigzag(reader.varint()));
    pools.saw(event);
  }
  if (reader.left() != 0) reader.fail("is followed by bytes that belong to no column");
  return events;
}

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

}  // namespace

std::int64_t Chunk::begin_ns() const noexcept {
  std::int64_t earliest = events.empty() ? 0 : INT64_MAX;
  for (const Event& event : events) earliest = std::min(earliest, static_cast<std::int64_t>(event.ticks));
  return earliest;
}

std::int64_t Chunk::end_ns() const noexcept {
  std::int64_t latest = events.empty() ? 0 : INT64_MIN;
  for (const Event& event : events) latest = std::max(latest, static_cast<std::int64_t>(event.ticks));
  return latest;
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
  const std::vector<std::byte> columns = encode_columns(events);
  std::vector<std::byte> out(kHeaderBytes + ZSTD_compressBound(columns.size()));
  // A context per thread: creating one costs more than compressing a small chunk.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  const std::size_t packed =
      ZSTD_compressCCtx(context.get(), out.data() + kHeaderBytes, out.size() - kHeaderBytes, columns.data(),
                        columns.size(), kZstdLevel);
  if (ZSTD_isError(packed) != 0) {
    throw std::runtime_error(std::string("chunk: cannot compress: ") + ZSTD_getErrorName(packed));
  }
  out.resize(kHeaderBytes + packed);

  std::vector<std::byte> header;
  header.reserve(kHeaderBytes);
  ByteWriter writer(header);
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
  writer.fixed(begin_ns());
  writer.fixed(end_ns());
  writer.fixed(static_cast<std::uint32_t>(columns.size()));
  writer.fixed(static_cast<std::uint32_t>(packed));
  writer.fixed(crc32c(out.data() + kHeaderBytes, packed));
  writer.fixed(crc32c(header.data(), header.size()));
  static_assert(kHeaderBytes == 4 + 2 + 2 + 4 + 4 + 7 * 8 + 4 * 4);
  std::copy(header.begin(), header.end(), out.begin());
  return out;
}

Chunk Chunk::decode(const std::byte* data, std::size_t bytes) {
  if (bytes < kHeaderBytes) {
    throw std::runtime_error("chunk: " + std::to_string(bytes) + " bytes, fewer than its header of " +
                             std::to_string(kHeaderBytes));
  }
  ByteReader reader(data, kHeaderBytes, "header");
  if (reader.fixed<std::uint32_t>() != kMagic) throw std::runtime_error("chunk: does not begin like a chunk");
  // The checksum before the version: a flipped bit must not read as "newer version".
  ByteReader sum(data + kHeaderBytes - 4, 4, "header");
  if (sum.fixed<std::uint32_t>() != crc32c(data, kHeaderBytes - 4)) {
    throw std::runtime_error("chunk: header checksum does not match");
  }
  const auto version = reader.fixed<std::uint16_t>();
  if (version == 0 || version > kVersion) {
    throw std::runtime_error("chunk: version " + std::to_string(version) + ", this program reads up to " +
                             std::to_string(kVersion));
  }
  const auto more_parts = reader.fixed<std::uint16_t>();
  Chunk chunk;
  if (version >= 2) chunk.parts = std::uint32_t{more_parts} + 1;
  chunk.rank = reader.fixed<std::uint32_t>();
  const auto count = reader.fixed<std::uint32_t>();
  chunk.sequence = reader.fixed<std::uint64_t>();
  chunk.clock_offset_ns = reader.fixed<std::int64_t>();
  chunk.clock_residual_ns = reader.fixed<std::int64_t>();
  chunk.dropped_before = reader.fixed<std::uint64_t>();
  chunk.lost_before = reader.fixed<std::uint64_t>();
  const auto begin = reader.fixed<std::int64_t>();
  const auto end = reader.fixed<std::int64_t>();
  const auto columns_bytes = reader.fixed<std::uint32_t>();
  const auto packed = reader.fixed<std::uint32_t>();
  const auto payload_sum = reader.fixed<std::uint32_t>();
  if (packed != bytes - kHeaderBytes) {
    throw std::runtime_error("chunk: holds " + std::to_string(bytes - kHeaderBytes) +
                             " bytes of columns, its header says " + std::to_string(packed));
  }
  if (payload_sum != crc32c(data + kHeaderBytes, packed)) {
    throw std::runtime_error("chunk: column checksum does not match");
  }
  // Every event takes at least a byte of tag and a byte of time, so a forged count cannot ask for memory
  // that the columns do not back.
  if (count > kMaxEvents || columns_bytes > kMaxColumnsBytes || columns_bytes / 2 < count) {
    throw std::runtime_error("chunk: " + std::to_string(count) + " events in " +
                             std::to_string(columns_bytes) + " bytes of columns cannot be");
  }
  std::vector<std::byte> columns(columns_bytes);
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  const std::size_t unpacked =
      ZSTD_decompressDCtx(context.get(), columns.data(), columns.size(), data + kHeaderBytes, packed);
  if (ZSTD_isError(unpacked) != 0) {
    throw std::runtime_error(std::string("chunk: cannot decompress: ") + ZSTD_getErrorName(unpacked));
  }
  if (unpacked != columns_bytes) throw std::runtime_error("chunk: columns are shorter than the header says");
  chunk.events = decode_columns(columns.data(), columns.size(), count);
  if (chunk.begin_ns() != begin || chunk.end_ns() != end) {
    throw std::runtime_error("chunk: times of its events are not those of its header");
  }
  return chunk;
}

}  // namespace shardscope::store
