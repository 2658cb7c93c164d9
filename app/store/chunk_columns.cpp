#include "app/store/chunk_columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "app/store/bytes.h"
#include "app/store/scratch.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::kNoId;

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

/// Ids are differences modulo 2^32, so that kNoId and small ids are near each other.
std::int64_t restored(std::size_t f, std::int64_t delta, std::int64_t before) noexcept {
  if (f >= 3) return plus(before, delta);
  return static_cast<std::uint32_t>(static_cast<std::uint32_t>(before) + static_cast<std::uint32_t>(delta));
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

static_assert(offsetof(Event, kind) == 8 && offsetof(Event, stream) == 10 && offsetof(Event, code) == 11);
static_assert(std::endian::native == std::endian::little, "a tag's key is read as it lies in the event");

/// The combination of kind, stream and code as one number, as the tag table stores it.
std::uint32_t key_of(const Event& event) noexcept {
  std::uint32_t key = 0;
  std::memcpy(&key, reinterpret_cast<const std::byte*>(&event) + offsetof(Event, kind), sizeof key);
  return key;
}

std::byte* put_varint(std::byte* at, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::byte>((value & 0x7FU) | 0x80U);
  *at++ = static_cast<std::byte>(value);
  return at;
}

/// Writes the columns of a chunk in two passes over its events: the first finds the tags, how often each
/// occurs and which of its fields change; the second writes every value to the end of its tag's column.
/// A column's place is as large as it could become; behind one another they are put at the end. Kept per
/// thread, because its memory costs more to get than a small chunk costs to encode.
class ColumnEncoder {
 public:
  /// The columns; valid until the next call.
  std::span<const std::byte> encode(const std::vector<Event>& events);

 private:
  static constexpr std::size_t kVarint32 = 5, kVarint64 = 10;  ///< bytes at most
  struct Column {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };
  struct EncodedTag {
    std::uint32_t key = 0;
    std::uint8_t mask = 0;
    bool memory = false;
    std::size_t count = 0;
    std::array<std::uint64_t, kFields> change{};  ///< bits in which a field ever differs from its initial
    std::array<std::int64_t, kFields> last{};
    std::array<Column, kFields> columns;
  };
  std::uint32_t tag_of(std::uint32_t key);
  void grow();
  void find_tags(const std::vector<Event>& events);
  std::size_t lay_out(std::size_t events);  ///< returns the room that the result needs at most
  void write(const std::vector<Event>& events);

  std::vector<EncodedTag> tags_;                                         ///< by first appearance
  std::vector<std::uint32_t> event_tags_;                                ///< by event
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024);  ///< tag + 1 by hash of its key
  Scratch columns_, result_;
  Column tag_column_, time_column_, pool_column_;
};

std::uint32_t ColumnEncoder::tag_of(std::uint32_t key) {
  for (std::size_t slot = key * 0x9E3779B1U >> 7U;; ++slot) {
    std::uint32_t& entry = slots_[slot & (slots_.size() - 1)];
    if (entry == 0) {
      EncodedTag& tag = tags_.emplace_back();
      tag.key = key;
      tag.memory = is_memory(key);
      entry = static_cast<std::uint32_t>(tags_.size());
      if (tags_.size() * 2 > slots_.size()) grow();
      return static_cast<std::uint32_t>(tags_.size() - 1);
    }
    if (tags_[entry - 1].key == key) return entry - 1;
  }
}

void ColumnEncoder::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::size_t t = 0; t < tags_.size(); ++t) {
    std::size_t slot = tags_[t].key * 0x9E3779B1U >> 7U;
    while (slots_[slot & (slots_.size() - 1)] != 0) ++slot;
    slots_[slot & (slots_.size() - 1)] = static_cast<std::uint32_t>(t + 1);
  }
}

void ColumnEncoder::find_tags(const std::vector<Event>& events) {
  tags_.clear();
  std::fill(slots_.begin(), slots_.end(), 0);
  event_tags_.resize(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const std::uint32_t t = tag_of(key_of(event));
    event_tags_[i] = t;
    EncodedTag& tag = tags_[t];
    ++tag.count;
    tag.change[0] |= event.a ^ kNoId;
    tag.change[1] |= event.b ^ kNoId;
    tag.change[2] |= event.c ^ kNoId;
    tag.change[3] |= static_cast<std::uint64_t>(event.v0);
    tag.change[4] |= static_cast<std::uint64_t>(event.v1);
  }
}

std::size_t ColumnEncoder::lay_out(std::size_t events) {
  std::size_t pool_events = 0, fields = 0;
  for (EncodedTag& tag : tags_) {
    if (tag.memory) pool_events += tag.count;
    for (std::size_t f = 0; f < kFields; ++f) {
      tag.last[f] = initial(f);
      if (tag.change[f] == 0) continue;
      tag.mask |= static_cast<std::uint8_t>(1U << f);
      if (f < 4 || !tag.memory) fields += tag.count * (f < 3 ? kVarint32 : kVarint64);
    }
  }
  const std::size_t most = events * (kVarint32 + kVarint64) + pool_events * kVarint64 + fields;
  std::byte* at = columns_.room(most);
  const auto place = [&at](Column& column, std::size_t bytes) {
    column = {at, at};
    at += bytes;
  };
  place(tag_column_, events * kVarint32);
  place(time_column_, events * kVarint64);
  place(pool_column_, pool_events * kVarint64);
  for (EncodedTag& tag : tags_) {
    for (std::size_t f = 0; f < kFields; ++f) {
      if ((tag.mask >> f & 1U) == 0 || (f == 4 && tag.memory)) continue;
      place(tag.columns[f], tag.count * (f < 3 ? kVarint32 : kVarint64));
    }
  }
  return kVarint64 + tags_.size() * 5 + most;
}

void ColumnEncoder::write(const std::vector<Event>& events) {
  std::byte* tag_at = tag_column_.begin;
  std::byte* time_at = time_column_.begin;
  std::byte* pool_at = pool_column_.begin;
  std::int64_t before = 0;
  PoolPrediction pools;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    EncodedTag& tag = tags_[event_tags_[i]];
    tag_at = put_varint(tag_at, event_tags_[i]);
    const auto now = static_cast<std::int64_t>(event.ticks);
    time_at = put_varint(time_at, zigzag(minus(now, before)));
    before = now;
    const auto id = [&tag](std::size_t f, std::uint32_t value) {
      const auto delta = static_cast<std::int32_t>(value - static_cast<std::uint32_t>(tag.last[f]));
      tag.last[f] = value;
      tag.columns[f].end = put_varint(tag.columns[f].end, zigzag(delta));
    };
    const auto number = [&tag](std::size_t f, std::int64_t value) {
      const std::int64_t delta = minus(value, tag.last[f]);
      tag.last[f] = value;
      tag.columns[f].end = put_varint(tag.columns[f].end, zigzag(delta));
    };
    if ((tag.mask & 1U) != 0) id(0, event.a);
    if ((tag.mask & 2U) != 0) id(1, event.b);
    if ((tag.mask & 4U) != 0) id(2, event.c);
    if ((tag.mask & 8U) != 0) number(3, event.v0);
    if (tag.memory) {
      pool_at = put_varint(pool_at, zigzag(minus(event.v1, pools.expect(event))));
      pools.saw(event);
    } else if ((tag.mask & 16U) != 0) {
      number(4, event.v1);
    }
  }
  tag_column_.end = tag_at;
  time_column_.end = time_at;
  pool_column_.end = pool_at;
}

std::span<const std::byte> ColumnEncoder::encode(const std::vector<Event>& events) {
  constexpr std::size_t kKept = 16U << 20;
  columns_.keep_at_most(kKept);
  result_.keep_at_most(kKept);
  find_tags(events);
  std::byte* const begin = result_.room(lay_out(events.size()));
  write(events);
  std::byte* at = put_varint(begin, tags_.size());
  for (const EncodedTag& tag : tags_) {
    std::memcpy(at, &tag.key, sizeof tag.key);
    at[4] = static_cast<std::byte>(tag.mask);
    at += 5;
  }
  const auto append = [&at](const Column& column) { at = std::copy(column.begin, column.end, at); };
  append(tag_column_);
  append(time_column_);
  for (std::size_t f = 0; f < kFields; ++f) {
    for (const EncodedTag& tag : tags_) append(tag.columns[f]);
  }
  append(pool_column_);
  return {begin, at};
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

}  // namespace

std::span<const std::byte> encode_columns(const std::vector<Event>& events) {
  thread_local ColumnEncoder encoder;
  return encoder.encode(events);
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

}  // namespace shardscope::store
