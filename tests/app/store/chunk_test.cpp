// The chunk codec: what goes in comes out, and damage is named, never believed and never fatal.
#include "app/store/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "app/store/crc32.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {
namespace {

using ev::Event;

bool same(const Event& a, const Event& b) {
  return a.ticks == b.ticks && a.kind == b.kind && a.stream == b.stream && a.code == b.code && a.a == b.a &&
         a.b == b.b && a.c == b.c && a.v0 == b.v0 && a.v1 == b.v1;
}

void expect_same(const Chunk& a, const Chunk& b) {
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.clock_offset_ns, b.clock_offset_ns);
  EXPECT_EQ(a.clock_residual_ns, b.clock_residual_ns);
  EXPECT_EQ(a.dropped_before, b.dropped_before);
  EXPECT_EQ(a.lost_before, b.lost_before);
  EXPECT_EQ(a.shed_before, b.shed_before);
  EXPECT_EQ(a.lost_between, b.lost_between);
  EXPECT_EQ(a.missing_begin_ns, b.missing_begin_ns);
  EXPECT_EQ(a.missing_end_ns, b.missing_end_ns);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i)
    ASSERT_TRUE(same(a.events[i], b.events[i])) << "event " << i;
}

Chunk round_trip(const Chunk& chunk) {
  const std::vector<std::byte> bytes = chunk.encode();
  return Chunk::decode(bytes.data(), bytes.size());
}

Chunk random_chunk(std::uint64_t seed, std::size_t events) {
  std::mt19937_64 random(seed);
  Chunk chunk;
  chunk.rank = static_cast<std::uint32_t>(random());
  chunk.sequence = random();
  chunk.parts = static_cast<std::uint32_t>(1 + random() % Chunk::kMaxParts);
  chunk.clock_offset_ns = static_cast<std::int64_t>(random());
  chunk.clock_residual_ns = static_cast<std::int64_t>(random());
  chunk.dropped_before = random();
  chunk.lost_before = random();
  chunk.shed_before = random();
  chunk.lost_between = random();
  chunk.missing_begin_ns = static_cast<std::int64_t>(random());
  chunk.missing_end_ns = static_cast<std::int64_t>(random());
  for (std::size_t i = 0; i < events; ++i) {
    Event event;
    event.ticks = random();
    event.kind = static_cast<ev::EventKind>(random() % 50);
    event.stream = static_cast<ev::StreamId>(random() % 256);
    event.code = static_cast<std::uint8_t>(random());
    event.a = static_cast<std::uint32_t>(random());
    event.b = random() % 2 == 0 ? ev::kNoId : static_cast<std::uint32_t>(random());
    event.c = random() % 2 == 0 ? 0 : static_cast<std::uint32_t>(random());
    event.v0 = static_cast<std::int64_t>(random());
    event.v1 = random() % 2 == 0 ? INT64_MIN : static_cast<std::int64_t>(random());
    chunk.events.push_back(event);
  }
  return chunk;
}

constexpr std::size_t kChunkHeader = 136;

/// Makes the checksums of a tampered chunk right again, as a hostile sender would.
void forge(std::vector<std::byte>& bytes) {
  std::uint32_t states = 0;  // compressed bytes of the first section
  std::memcpy(&states, bytes.data() + 112, 4);
  states = std::min(states, static_cast<std::uint32_t>(bytes.size() - kChunkHeader));
  std::memcpy(bytes.data() + 112, &states, 4);
  const std::uint32_t first = crc32c(bytes.data() + kChunkHeader, states);
  std::memcpy(bytes.data() + 116, &first, 4);
  const auto others = static_cast<std::uint32_t>(bytes.size() - kChunkHeader - states);
  std::memcpy(bytes.data() + kChunkHeader - 12, &others, 4);
  const std::uint32_t second = crc32c(bytes.data() + kChunkHeader + states, others);
  std::memcpy(bytes.data() + kChunkHeader - 8, &second, 4);
  const std::uint32_t header = crc32c(bytes.data(), kChunkHeader - 4);
  std::memcpy(bytes.data() + kChunkHeader - 4, &header, 4);
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);  // RFC 3720 check value
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string_view("56789"), crc32c("1234")), crc32c("123456789"));
}

TEST(Crc32, TablesAndInstructionAgree) {
  std::vector<std::byte> bytes(4096);
  std::mt19937 random(1);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  EXPECT_EQ(crc32c_by_tables("123456789", 9), 0xE3069283U);
  for (std::size_t length = 0; length < 200; ++length) {
    const std::size_t begin = random() % (bytes.size() - length);  // any alignment
    const auto seed = static_cast<std::uint32_t>(random());
    EXPECT_EQ(crc32c(bytes.data() + begin, length, seed),
              crc32c_by_tables(bytes.data() + begin, length, seed));
  }
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), crc32c_by_tables(bytes.data(), bytes.size()));
}

TEST(Chunk, EmptyChunkSurvives) { expect_same(round_trip(Chunk{}), Chunk{}); }

TEST(Chunk, AnyValuesSurvive) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Chunk chunk = random_chunk(seed, seed * 7);
    expect_same(round_trip(chunk), chunk);
  }
}

TEST(Chunk, SyntheticRunSurvivesAndIsSmall) {
  const SyntheticRun run = make_synthetic_run({.chunk_events = 4096});
  std::size_t events = 0;
  std::size_t bytes = 0;
  for (const Chunk& chunk : run.chunks) {
    const std::vector<std::byte> encoded = chunk.encode();
    expect_same(Chunk::decode(encoded.data(), encoded.size()), chunk);
    events += chunk.events.size();
    bytes += encoded.size();
  }
  const double each = static_cast<double>(bytes) / static_cast<double>(events);
  RecordProperty("bytes_per_event", std::to_string(each));
  std::printf("%zu events, %.2f bytes each\n", events, each);
  EXPECT_LT(each, 4.0);  // issue: at most 4 bytes per event
}

bool is_state(const ev::Event& event) {
  using enum ev::EventKind;
  return event.kind == param_status || event.kind == memory_alloc || event.kind == memory_free ||
         event.kind == bucket_open || event.kind == bucket_add || event.kind == bucket_flush;
}

TEST(Chunk, ALargeOneIsReadInParts) {
  const std::vector<Chunk> chunks = make_synthetic_run({.steps = 40, .chunk_events = 8192}).chunks;
  const auto large = std::find_if(chunks.begin(), chunks.end(),
                                  [](const Chunk& chunk) { return chunk.events.size() > 8000; });
  ASSERT_NE(large, chunks.end());
  const std::vector<std::byte> encoded = large->encode();
  Chunk states = *large, others = *large;
  std::erase_if(states.events, [](const ev::Event& event) { return !is_state(event); });
  std::erase_if(others.events, is_state);
  ASSERT_GT(states.events.size(), 1000U);
  ASSERT_GT(others.events.size(), 1000U);
  expect_same(Chunk::decode(encoded.data(), encoded.size(), Chunk::Part::states), states);
  expect_same(Chunk::decode(encoded.data(), encoded.size(), Chunk::Part::others), others);
  expect_same(Chunk::decode(encoded.data(), encoded.size()), *large);
  // Only what is requested is read: damage to one part does not hide the other.
  std::vector<std::byte> damaged = encoded;
  damaged.back() ^= std::byte{1};
  expect_same(Chunk::decode(damaged.data(), damaged.size(), Chunk::Part::states), states);
  EXPECT_THROW((void)Chunk::decode(damaged.data(), damaged.size(), Chunk::Part::others), std::runtime_error);
  EXPECT_THROW((void)Chunk::decode(damaged.data(), damaged.size()), std::runtime_error);
  damaged = encoded;
  damaged[kChunkHeader + 50] ^= std::byte{1};
  expect_same(Chunk::decode(damaged.data(), damaged.size(), Chunk::Part::others), others);
  EXPECT_THROW((void)Chunk::decode(damaged.data(), damaged.size(), Chunk::Part::states), std::runtime_error);
  EXPECT_THROW((void)Chunk::decode(damaged.data(), damaged.size()), std::runtime_error);
}

TEST(Chunk, AnyOrderOfPartsSurvives) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Chunk chunk = random_chunk(seed, 5000);
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < chunk.events.size(); ++i) {
      // Runs of any length; of the state first, last, always or never.
      const bool state = seed == 0 || (seed != 1 && (i / (1 + seed * seed)) % 2 == seed % 2);
      chunk.events[i].kind = state ? ev::EventKind::memory_alloc : ev::EventKind::module_begin;
      if (seed > 5 && random() % 4 == 0) chunk.events[i].kind = ev::EventKind::param_status;
    }
    expect_same(round_trip(chunk), chunk);
  }
}

TEST(Chunk, EveryTruncationIsRefused) {
  for (const Chunk& chunk : {random_chunk(5, 60), random_chunk(5, 4200)}) {
    const std::vector<std::byte> bytes = chunk.encode();
    for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 200) {
      EXPECT_THROW((void)Chunk::decode(bytes.data(), n), std::runtime_error) << n;
    }
  }
}

TEST(Chunk, EveryFlippedBitIsRefused) {
  for (const Chunk& chunk : {random_chunk(6, 40), random_chunk(6, 4200)}) {
    const std::vector<std::byte> bytes = chunk.encode();
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 1 + bit / 8000) {
      std::vector<std::byte> copy = bytes;
      copy[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_THROW((void)Chunk::decode(copy.data(), copy.size()), std::runtime_error) << bit;
    }
  }
}

TEST(Chunk, ForgedBytesNeverCrash) {
  // With right checksums the bounds of the columns are the only defence.
  const std::vector<std::byte> small =
      make_synthetic_run({.steps = 1, .chunk_events = 256}).chunks[3].encode();
  const std::vector<std::byte> apart =
      make_synthetic_run({.steps = 20, .chunk_events = 4200}).chunks[0].encode();
  std::mt19937_64 random(11);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> copy = i % 4 == 0 ? apart : small;
    const std::size_t flips = 1 + random() % 4;
    for (std::size_t f = 0; f < flips; ++f) copy[random() % copy.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) copy.resize(kChunkHeader + random() % (copy.size() - kChunkHeader));
    forge(copy);
    for (const Chunk::Part part : {Chunk::Part::all, Chunk::Part::states, Chunk::Part::others}) {
      try {
        Store store;
        store.ingest(Chunk::decode(copy.data(), copy.size(), part));
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Chunk, ErrorsNameWhatIsDamaged) {
  const auto message = [](std::vector<std::byte> bytes, auto change) {
    change(bytes);
    try {
      (void)Chunk::decode(bytes.data(), bytes.size());
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::vector<std::byte> good = random_chunk(7, 20).encode();
  EXPECT_NE(message(good, [](auto& b) { b[0] = std::byte{0}; }).find("begin like a chunk"),
            std::string::npos);
  EXPECT_NE(message(good, [](auto& b) { b[20] ^= std::byte{1}; }).find("header checksum"), std::string::npos);
  EXPECT_NE(message(good, [](auto& b) { b.back() ^= std::byte{1}; }).find("column checksum"),
            std::string::npos);
  EXPECT_NE(message(good, [](auto& b) { b.pop_back(); }).find("its header says"), std::string::npos);
  EXPECT_NE(message(good,
                    [](auto& b) {
                      b[4] = std::byte{9};
                      forge(b);
                    })
                .find("version 9"),
            std::string::npos);
}

}  // namespace
}  // namespace shardscope::store
