// Decodes columns to events. Every count, index and end is checked: bytes may be anything.
#include <array>
#include <numeric>

#include "app/store/bytes.h"
#include "app/store/chunk_columns.h"
#include "app/store/event_columns.h"

namespace shardscope::store {
namespace {

using instrumentation::Event;

// key and mask as stored; `count`: its events in the tag column.
struct Tag {
  std::uint32_t key = 0;
  std::uint8_t mask = 0;
  std::size_t count = 0;
};

/// Fields in the order of the mask's bits: a, b, c, v0, v1.
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

/// Ids are differences modulo 2^32, so that kNoId and small ids are near each other.
std::int64_t restored(std::size_t f, std::int64_t delta, std::int64_t before) noexcept {
  if (f >= 3) return plus(before, delta);
  return static_cast<std::uint32_t>(static_cast<std::uint32_t>(before) + static_cast<std::uint32_t>(delta));
}

/// Index in `events` of each event of a section.
using Places = std::vector<std::uint32_t>;

/// There are no more tags than events, whose number is at most half of the section's bytes (chunk.cpp): that
/// bounds the memory of a damaged section too.
std::vector<Tag> read_tags(ByteReader& reader, std::size_t count) {
  reader.now_reading("tag table");
  const std::uint64_t tags = reader.varint();
  if (tags > count) reader.fail("has more entries than the chunk has events");
  std::vector<Tag> out(tags);
  for (Tag& tag : out) {
    tag.key = reader.fixed<std::uint32_t>();
    tag.mask = reader.fixed<std::uint8_t>();
    if (tag.mask >= 1U << kColumnFields) reader.fail("has an unknown field mask");
  }
  return out;
}

/// Reads the tag column. Returns the indices of events in order of tag, stable.
/// A counting sort by tag. `places` gives for the i-th event of the section its index in `events`; the result
/// lists the same indices tag by tag, as the field columns are stored, each tag's in the section's order.
Places read_tag_column(ByteReader& reader, std::vector<Tag>& tags, const Places& places,
                       std::vector<Event>& events) {
  reader.now_reading("tag column");
  std::vector<std::uint32_t> tag_of(places.size());
  std::size_t at = 0;
  reader.varints(places.size(), [&](std::uint64_t t) {
    if (t >= tags.size()) reader.fail("names a tag that is not in the table");
    tag_of[at] = static_cast<std::uint32_t>(t);
    Tag& tag = tags[t];
    ++tag.count;
    Event& event = events[places[at]];
    event = Event{};  // the reused memory may have an old event
    set_tag_key(event, tag.key);
    ++at;
  });
  std::vector<std::size_t> next(tags.size(), 0);
  std::size_t start = 0;
  for (std::size_t t = 0; t < tags.size(); ++t) {
    // Preceded by the events of tags 0 to t - 1.
    next[t] = start;
    start += tags[t].count;
  }
  Places order(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) order[next[tag_of[i]]++] = places[i];
  return order;
}

// `f` is a template parameter, so that the loop over events has no switch on it.
template <std::size_t f>
void read_field(ByteReader& reader, const std::vector<Tag>& tags, const Places& order,
                std::vector<Event>& events) {
  static constexpr std::array<const char*, kColumnFields> kNames = {"column a", "column b", "column c",
                                                                    "column v0", "column v1"};
  reader.now_reading(kNames[f]);
  std::size_t i = 0;
  for (const Tag& tag : tags) {
    // Not stored: the events keep the initial value from Event{}, and are skipped.
    if ((tag.mask >> f & 1U) == 0 || (f == 4 && is_memory(tag.key))) {
      i += tag.count;
      continue;
    }
    // Differences restart with each tag: columns of tags do not depend on each other.
    std::int64_t last = initial_field(f);
    reader.varints(tag.count, [&](std::uint64_t delta) {
      last = restored(f, unzigzag(delta), last);
      set_field(events[order[i++]], f, last);
    });
  }
}

/// One section: its tag table and columns, up to the end of `reader`.
/// In the order in which the encoder's gather() writes. Every column is read to its end even where its
/// events are not needed, because only that shows where the next one begins.
void read_section(ByteReader& reader, const Places& places, std::vector<Event>& events) {
  std::vector<Tag> tags = read_tags(reader, places.size());
  const Places order = read_tag_column(reader, tags, places, events);
  reader.now_reading("time column");
  std::int64_t now = 0;
  const std::uint32_t* place = places.data();
  reader.varints(places.size(), [&](std::uint64_t delta) {
    now = plus(now, unzigzag(delta));
    events[*place++].ticks = static_cast<std::uint64_t>(now);
  });
  read_field<0>(reader, tags, order, events);
  read_field<1>(reader, tags, order, events);
  read_field<2>(reader, tags, order, events);
  read_field<3>(reader, tags, order, events);
  read_field<4>(reader, tags, order, events);
  reader.now_reading("pool column");
  // Last: the prediction needs v0 and the events in order.
  PoolPrediction pools;
  for (const std::uint32_t its : places) {
    Event& event = events[its];
    if (!is_memory(tag_key(event))) continue;
    event.v1 = plus(pools.expect(event), unzigzag(reader.varint()));
    pools.saw(event);
  }
  if (reader.left() != 0) reader.fail("is followed by bytes that belong to no column");
}

Places consecutive(std::size_t count) {
  Places places(count);
  std::iota(places.begin(), places.end(), 0U);
  return places;
}

/// Calls `run(length)` for the runs of others and of states in turn, others first, until all events are
/// accounted for.
template <typename Run>
void read_order(ByteReader& reader, std::size_t count, std::size_t state_events, Run run) {
  reader.now_reading("order");
  std::array<std::size_t, 2> left = {count - state_events, state_events};
  // Terminates: each run but the first has at least one event.
  for (std::size_t which = 0; left[0] + left[1] > 0; which = 1 - which) {
    const std::uint64_t length = reader.varint();
    // Only the first run may be empty.
    if (length > left[which] || (length == 0 && left[0] + left[1] != count)) {
      reader.fail("does not fit the number of events");
    }
    left[which] -= length;
    run(which, length);
  }
}

}  // namespace

/// State events alone, in the chunk's order. `events`: memory to reuse.
std::vector<Event> decode_states(std::span<const std::byte> states, std::size_t count,
                                 std::vector<Event> events) {
  events.resize(count);
  ByteReader reader(states.data(), states.size(), "states");
  read_section(reader, consecutive(count), events);
  return events;
}

/// The lengths of runs are read to check and to skip them.
std::vector<Event> decode_others(std::span<const std::byte> others, std::size_t count,
                                 std::size_t state_events, std::vector<Event> events) {
  events.resize(count - state_events);
  ByteReader reader(others.data(), others.size(), "order");
  if (state_events > 0) read_order(reader, count, state_events, [](std::size_t, std::uint64_t) {});
  read_section(reader, consecutive(events.size()), events);
  return events;
}

/// places[0]: indices of the others, places[1]: of states; together 0 .. count - 1, each once. So both
/// sections are decoded directly into the chunk's order.
std::vector<Event> decode_columns(const ChunkColumns& columns, std::size_t count) {
  if (columns.state_events == 0) return decode_others(columns.others, count, 0);
  std::array<Places, 2> places;
  places[0].reserve(count - columns.state_events);
  places[1].reserve(columns.state_events);
  std::uint32_t next = 0;
  ByteReader others(columns.others.data(), columns.others.size(), "order");
  read_order(others, count, columns.state_events, [&](std::size_t which, std::uint64_t length) {
    for (; length > 0; --length) places[which].push_back(next++);
  });
  std::vector<Event> events(count);
  read_section(others, places[0], events);
  ByteReader states(columns.states.data(), columns.states.size(), "states");
  read_section(states, places[1], events);
  return events;
}

}  // namespace shardscope::store
