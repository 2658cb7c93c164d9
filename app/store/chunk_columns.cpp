#include "app/store/chunk_columns.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "app/store/bytes.h"
#include "app/store/event_columns.h"
#include "app/store/scratch.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;
using instrumentation::kNoId;

/// No bounds check: lay_out() has reserved the maximum size of each column.
std::byte* put_varint(std::byte* at, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::byte>((value & 0x7FU) | 0x80U);
  *at++ = static_cast<std::byte>(value);
  return at;
}

/// First slot to probe for a key. All of its bits count: one kind has many codes, which are in the
/// highest.
constexpr std::size_t slot_of(std::uint32_t key) noexcept {
  return key * std::uint64_t{0x9E37'79B9'7F4A'7C15} >> 40U;
}

/// Writes the columns of a chunk in two passes over its events: the first finds the tags, how often each
/// occurs and which of its fields change; the second writes every value to the end of its tag's column.
/// A column is laid out with its maximum size; at the end the columns are moved together. Kept per
/// thread, because allocating its memory costs more than encoding a small chunk.
class ColumnEncoder {
 public:
  /// The columns; valid until the next call.
  ChunkColumns encode(const std::vector<Event>& events, bool apart);

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
    std::uint8_t section = kOthers;
    std::uint32_t index = 0;  ///< in its section's table
    std::size_t count = 0;
    std::array<std::uint64_t, kColumnFields>
        change{};  ///< bits in which a field ever differs from its initial
    std::array<std::int64_t, kColumnFields> last{};
    std::array<Column, kColumnFields> columns;
  };
  static constexpr std::uint8_t kStates = 0, kOthers = 1;
  struct Section {
    std::size_t events = 0;
    std::uint32_t tags = 0;
    Column tag_column, time_column;
    std::int64_t before = 0;  ///< time of the section's previous event
  };
  std::uint32_t tag_of(std::uint32_t key);
  void grow();
  void find_tags(const std::vector<Event>& events);
  std::size_t lay_out(std::size_t events);  ///< returns the maximum size of the result
  void write(const std::vector<Event>& events);
  /// Copies the columns of a section one after the other.
  [[nodiscard]] std::byte* gather(std::uint8_t section, std::byte* at) const;

  bool apart_ = false;
  std::array<Section, 2> sections_;
  std::vector<EncodedTag> tags_;                                         ///< by first appearance
  std::vector<std::uint32_t> event_tags_;                                ///< by event
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024);  ///< tag + 1 by hash of its key
  Scratch columns_, result_;
  Column order_column_, pool_column_;
};

std::uint32_t ColumnEncoder::tag_of(std::uint32_t key) {
  // Open addressing with linear probing; at most half of the slots are in use, so a free one is near. 0:
  // free.
  for (std::size_t slot = slot_of(key);; ++slot) {
    std::uint32_t& entry = slots_[slot & (slots_.size() - 1)];
    if (entry == 0) {
      EncodedTag& tag = tags_.emplace_back();
      tag.key = key;
      tag.memory = is_memory(key);
      tag.section = apart_ && is_of_state(kind_of(key)) ? kStates : kOthers;
      tag.index = sections_[tag.section].tags++;
      entry = static_cast<std::uint32_t>(tags_.size());
      if (tags_.size() * 2 > slots_.size()) grow();
      return static_cast<std::uint32_t>(tags_.size() - 1);
    }
    if (tags_[entry - 1].key == key) return entry - 1;
  }
}

/// Tags are in the list already; only their slots move.
void ColumnEncoder::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::size_t t = 0; t < tags_.size(); ++t) {
    std::size_t slot = slot_of(tags_[t].key);
    while (slots_[slot & (slots_.size() - 1)] != 0) ++slot;
    slots_[slot & (slots_.size() - 1)] = static_cast<std::uint32_t>(t + 1);
  }
}

/// First pass. Keeps the tag of each event (event_tags_), so that the second pass needs no lookup.
void ColumnEncoder::find_tags(const std::vector<Event>& events) {
  tags_.clear();
  sections_ = {};
  std::fill(slots_.begin(), slots_.end(), 0);
  event_tags_.resize(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const std::uint32_t t = tag_of(tag_key(event));
    event_tags_[i] = t;
    EncodedTag& tag = tags_[t];
    ++tag.count;
    // Compared with a field's value where it is not stored: 0 after all events means that none needs it.
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
    sections_[tag.section].events += tag.count;
    if (tag.memory) pool_events += tag.count;
    for (std::size_t f = 0; f < kColumnFields; ++f) {
      tag.last[f] = initial_field(f);
      if (tag.change[f] == 0) continue;
      tag.mask |= static_cast<std::uint8_t>(1U << f);
      if (f < 4 || !tag.memory) fields += tag.count * (f < 3 ? kVarint32 : kVarint64);
    }
  }
  // Every event may begin a run, and the first run, of others, may be empty.
  const std::size_t runs = apart_ ? events + 1 : 0;
  // In bytes, every varint at its maximum: ids are 32-bit differences, times and values 64-bit.
  const std::size_t most =
      events * (kVarint32 + kVarint64) + runs * kVarint32 + pool_events * kVarint64 + fields;
  // All columns in one buffer, each with its maximum size: nothing grows while values
  // are written.
  std::byte* at = columns_.room(most);
  const auto place = [&at](Column& column, std::size_t bytes) {
    column = {at, at};
    at += bytes;
  };
  for (Section& section : sections_) {
    place(section.tag_column, section.events * kVarint32);
    place(section.time_column, section.events * kVarint64);
  }
  place(order_column_, runs * kVarint32);
  place(pool_column_, pool_events * kVarint64);
  for (EncodedTag& tag : tags_) {
    for (std::size_t f = 0; f < kColumnFields; ++f) {
      // v1 of memory events goes to the pool column, whatever its bit in the mask is; the decoder does
      // the same.
      if ((tag.mask >> f & 1U) == 0 || (f == 4 && tag.memory)) continue;
      place(tag.columns[f], tag.count * (f < 3 ? kVarint32 : kVarint64));
    }
  }
  // The number of tags of each section, five bytes for a tag (u32 key, u8 mask), and the columns.
  return 2 * kVarint64 + tags_.size() * 5 + most;
}

/// Second pass, in the chunk's order: every value is appended to its column. The pool column is shared by all
/// memory events, because a pool's bytes continue from tag to tag (allocations and frees).
void ColumnEncoder::write(const std::vector<Event>& events) {
  std::byte* pool_at = pool_column_.begin;
  PoolPrediction pools;
  std::uint8_t running = kOthers;  // section of the current run
  std::size_t run = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    EncodedTag& tag = tags_[event_tags_[i]];
    Section& section = sections_[tag.section];
    // A run ends: write its length, others first. The first is 0 where the chunk begins with a state event.
    if (apart_ && tag.section != running) {
      order_column_.end = put_varint(order_column_.end, run);
      running = tag.section;
      run = 0;
    }
    ++run;
    section.tag_column.end = put_varint(section.tag_column.end, tag.index);
    const auto now = static_cast<std::int64_t>(event.ticks);
    section.time_column.end = put_varint(section.time_column.end, zigzag(minus(now, section.before)));
    section.before = now;
    const auto id = [&tag](std::size_t f, std::uint32_t value) {
      // Modulo 2^32 and signed: kNoId (2^32 - 1) and 0 are one apart.
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
  if (apart_) order_column_.end = put_varint(order_column_.end, run);
  pool_column_.end = pool_at;
}

/// The section's bytes in the order of docs/recording.md: order (in the others, where states are apart), tag
/// table, tag column, times, a, b, c, v0, v1, pool.
std::byte* ColumnEncoder::gather(std::uint8_t section, std::byte* at) const {
  const auto append = [&at](const Column& column) { at = std::copy(column.begin, column.end, at); };
  if (apart_ && section == kOthers) append(order_column_);
  at = put_varint(at, sections_[section].tags);
  for (const EncodedTag& tag : tags_) {
    if (tag.section != section) continue;
    std::memcpy(at, &tag.key, sizeof tag.key);
    at[4] = static_cast<std::byte>(tag.mask);
    at += 5;
  }
  append(sections_[section].tag_column);
  append(sections_[section].time_column);
  bool memory = false;
  for (std::size_t f = 0; f < kColumnFields; ++f) {
    for (const EncodedTag& tag : tags_) {
      if (tag.section != section) continue;
      memory = memory || tag.memory;
      // Empty where the field is not stored.
      append(tag.columns[f]);
    }
  }
  if (memory) append(pool_column_);
  return at;
}

ChunkColumns ColumnEncoder::encode(const std::vector<Event>& events, bool apart) {
  // At most 16 MiB of each buffer stay allocated.
  constexpr std::size_t kKept = 16U << 20;
  columns_.keep_at_most(kKept);
  result_.keep_at_most(kKept);
  apart_ = apart;
  find_tags(events);
  // Without state events there is one section, the others.
  apart_ = apart_ && sections_[kStates].tags > 0;
  std::byte* const begin = result_.room(lay_out(events.size()));
  write(events);
  std::byte* const middle = apart_ ? gather(kStates, begin) : begin;
  std::byte* const end = gather(kOthers, middle);
  return {.states = {begin, middle}, .others = {middle, end}, .state_events = sections_[kStates].events};
}

}  // namespace

ChunkColumns encode_columns(const std::vector<Event>& events, bool apart) {
  thread_local ColumnEncoder encoder;
  return encoder.encode(events, apart);
}

}  // namespace shardscope::store
