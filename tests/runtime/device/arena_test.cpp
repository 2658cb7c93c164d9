// The arena: exact accounts, buffers that never overlap, memory that is used again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "runtime/comm/world.h"
#include "runtime/device/cpu/huge_pages.h"
#include "runtime/device/cpu/region_allocator.h"
#include "runtime/device/device.h"
#include "runtime/device/error.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::device {
namespace {

using instrumentation::MemoryCategory;
using ::testing::HasSubstr;

class ArenaTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device = make_cpu_device(nullptr);
  Arena& arena = device->memory();
  Stream& stream = device->compute();
};

TEST_F(ArenaTest, AccountsByCategory) {
  Buffer a = arena.allocate(1, {MemoryCategory::param_shard, 3}, stream);
  Buffer b = arena.allocate(1000, {MemoryCategory::activation, 4}, stream);
  EXPECT_EQ(a.bytes(), 1U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % Arena::kAlignment, 0U);
  EXPECT_EQ(arena.used_bytes(MemoryCategory::param_shard), 256U);
  EXPECT_EQ(arena.used_bytes(MemoryCategory::activation), 1024U);
  EXPECT_EQ(arena.used_bytes(), 1280U);
  arena.retag(b, {MemoryCategory::grad_shard, 4});
  EXPECT_EQ(arena.used_bytes(MemoryCategory::activation), 0U);
  EXPECT_EQ(arena.used_bytes(MemoryCategory::grad_shard), 1024U);
  b.reset();
  EXPECT_EQ(arena.used_bytes(MemoryCategory::grad_shard), 0U);
  EXPECT_EQ(arena.used_bytes(), 256U);
  EXPECT_EQ(arena.peak_bytes(), 1280U);
  EXPECT_EQ(arena.pool(), instrumentation::MemoryPool::device);
  EXPECT_EQ(device->pinned().pool(), instrumentation::MemoryPool::pinned);
  EXPECT_EQ(device->pinned().used_bytes(), 0U) << "pools share no account";
}

TEST_F(ArenaTest, AllocationsBeforeAPublisherAreReportedByCategory) {
  using instrumentation::Event;
  const Buffer a = arena.allocate(1000, {MemoryCategory::temporary}, stream);
  const Buffer b = arena.allocate(1, {MemoryCategory::param_shard, 3}, stream);
  std::vector<Event> reported;
  (void)instrumentation::RingRegistry::instance().drain(reported);
  reported.clear();
  instrumentation::g_detail = static_cast<int>(instrumentation::Detail::params);
  arena.emit_used();
  instrumentation::g_detail = -1;
  (void)instrumentation::RingRegistry::instance().drain(reported);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].code, shardscope::test::memory_code(arena.pool(), MemoryCategory::param_shard));
  EXPECT_EQ(reported[0].v0, 256);
  EXPECT_EQ(reported[0].v1, 256);
  EXPECT_EQ(reported[1].code, shardscope::test::memory_code(arena.pool(), MemoryCategory::temporary));
  EXPECT_EQ(reported[1].v0, 1024);
  EXPECT_EQ(reported[1].v1, 1280);
}

TEST_F(ArenaTest, NothingIsAllocatedForNothing) {
  const Buffer empty = arena.allocate(0, {}, stream);
  EXPECT_FALSE(empty);
  EXPECT_EQ(arena.used_bytes(), 0U);
}

TEST_F(ArenaTest, FreedMemoryIsUsedAgainOnItsStreamOnly) {
  Buffer a = arena.allocate(3 << 20, {}, stream);
  void* place = a.data();
  a.reset();
  const Buffer other = arena.allocate(3 << 20, {}, device->gather());
  EXPECT_NE(other.data(), place) << "work queued on the owning stream may still use it";
  const Buffer again = arena.allocate(3 << 20, {}, stream);
  EXPECT_EQ(again.data(), place);
}

TEST_F(ArenaTest, MovesKeepOneOwner) {
  Buffer a = arena.allocate(100, {}, stream);
  Buffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): the state after a move is what is tested
  EXPECT_TRUE(b);
  b = arena.allocate(200, {}, stream);
  EXPECT_EQ(arena.used_bytes(), 256U);
}

TEST_F(ArenaTest, NeighboursJoinAgain) {
  std::vector<Buffer> pieces;
  for (int i = 0; i < 16; ++i) pieces.push_back(arena.allocate(3 << 20, {}, stream));
  const std::size_t reserved = arena.reserved_bytes();
  for (const int order : {3, 5, 1, 4, 0, 2}) pieces[static_cast<std::size_t>(order)].reset();
  const Buffer whole = arena.allocate(18 << 20, {}, stream);
  EXPECT_EQ(arena.reserved_bytes(), reserved) << "six joined neighbours hold eighteen MiB";
}

TEST_F(ArenaTest, TrimGivesBackWhatIsIdle) {
  Buffer kept = arena.allocate(100, {}, stream);
  Buffer gone = arena.allocate(64 << 20, {}, stream);
  Buffer elsewhere = arena.allocate(32 << 20, {}, device->gather());
  const std::size_t before = arena.reserved_bytes();
  gone.reset();
  elsewhere.reset();
  EXPECT_EQ(arena.reserved_bytes(), before);
  EXPECT_EQ(arena.trim(), std::size_t{96} << 20);
  EXPECT_EQ(arena.reserved_bytes(), before - (std::size_t{96} << 20));
  EXPECT_EQ(arena.used_bytes(), 256U);
}

TEST(ArenaLimit, ExhaustionSaysWhatIsInUse) {
  const auto device = make_cpu_device(CpuDeviceOptions{nullptr, 1, std::size_t{10} << 20});
  Arena& arena = device->memory();
  const Buffer shard = arena.allocate(6 << 20, {MemoryCategory::param_shard, 0}, device->compute());
  const Buffer small = arena.allocate(1 << 20, {MemoryCategory::momentum, 0}, device->compute());
  try {
    const Buffer more = arena.allocate(5 << 20, {MemoryCategory::activation, 0}, device->compute());
    FAIL() << "twelve MiB were given out of ten";
  } catch (const BackendError& error) {
    EXPECT_THAT(error.what(), HasSubstr("asked for 5.00 MiB (activation)"));
    EXPECT_THAT(error.what(), HasSubstr("in use 7.00 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("limit of 10.00 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("param_shard 6.00 MiB, momentum 1.00 MiB"));
  }
  EXPECT_EQ(arena.used_bytes(), std::size_t{7} << 20) << "a refused request leaves no trace";
}

TEST(ArenaLimit, IdleMemoryOfOtherStreamsIsGivenBackFirst) {
  const auto device = make_cpu_device(CpuDeviceOptions{nullptr, 1, std::size_t{10} << 20});
  Buffer idle = device->memory().allocate(8 << 20, {}, device->gather());
  idle.reset();
  const Buffer now = device->memory().allocate(8 << 20, {}, device->compute());
  EXPECT_TRUE(now);
}

TEST(RegionArena, MemoryComesFromTheRegionAndReadsAsZeroAfterTrim) {
  const auto worlds = comm::make_thread_worlds(1, {});
  SharedRegion& region = *worlds[0]->region();
  const auto device = make_cpu_device(&region);
  Buffer buffer = device->memory().allocate(4 << 20, {}, device->compute());
  auto* data = static_cast<std::byte*>(buffer.data());
  ASSERT_GE(data, region.bytes().data());
  ASSERT_LE(data + buffer.bytes(), region.bytes().data() + region.bytes().size());
  std::memset(data, 0xAB, buffer.bytes());
  buffer.reset();
  device->memory().trim();
  Buffer again = device->memory().allocate(4 << 20, {}, device->compute());
  EXPECT_EQ(again.data(), data);
  EXPECT_EQ(data[12345], std::byte{0}) << "the pages were not given back";
}

TEST(RegionAllocatorTest, JoinsWhatIsGivenBack) {
  RegionAllocator allocator(100);
  EXPECT_EQ(allocator.take(40), 0U);
  EXPECT_EQ(allocator.take(40), 40U);
  EXPECT_EQ(allocator.take(40), std::nullopt);
  allocator.give_back(0, 40);
  EXPECT_EQ(allocator.take(20), 0U);
  allocator.give_back(40, 40);
  allocator.give_back(0, 20);
  EXPECT_EQ(allocator.take(100), 0U);
}

TEST_F(ArenaTest, RandomUseKeepsAccountsAndContents) {
  std::mt19937 random(7);
  struct Live {
    Buffer buffer;
    MemoryTag tag;
    unsigned char pattern = 0;
  };
  std::vector<Live> live;
  std::map<MemoryCategory, std::size_t> expected;
  std::size_t total = 0;
  std::size_t peak = 0;
  const auto rounded = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  std::vector<Stream*> streams{&device->compute(), &device->gather(), &device->reduce()};
  for (int i = 0; i < 6000; ++i) {
    if (live.empty() || random() % 100 < (live.size() < 60 ? 60U : 40U)) {
      // Sizes over five orders of magnitude, as parameters have them.
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (4 + random() % 18));
      const MemoryTag tag{static_cast<MemoryCategory>(random() % instrumentation::kMemoryCategoryCount), 0};
      Live entry{arena.allocate(bytes, tag, *streams[random() % 3]), tag,
                 static_cast<unsigned char>(random())};
      std::memset(entry.buffer.data(), entry.pattern, bytes);
      expected[tag.category] += rounded(bytes);
      total += rounded(bytes);
      peak = std::max(peak, total);
      live.push_back(std::move(entry));
    } else {
      const std::size_t k = random() % live.size();
      Live& entry = live[k];
      const auto* data = static_cast<const unsigned char*>(entry.buffer.data());
      for (std::size_t b = 0; b < entry.buffer.bytes(); b += 1 + b / 16) ASSERT_EQ(data[b], entry.pattern);
      ASSERT_EQ(data[entry.buffer.bytes() - 1], entry.pattern) << "another buffer wrote here";
      expected[entry.tag.category] -= rounded(entry.buffer.bytes());
      total -= rounded(entry.buffer.bytes());
      std::swap(live[k], live.back());
      live.pop_back();
    }
    ASSERT_EQ(arena.used_bytes(), total);
    ASSERT_EQ(arena.peak_bytes(), peak);
    ASSERT_GE(arena.reserved_bytes(), total);
  }
  for (const auto& [category, bytes] : expected) EXPECT_EQ(arena.used_bytes(category), bytes);
  live.clear();
  EXPECT_EQ(arena.used_bytes(), 0U);
  arena.trim();
  EXPECT_EQ(arena.reserved_bytes(), 0U) << "every segment was whole again";
}

TEST_F(ArenaTest, StepAfterStepReservesNoMore) {
  // The pattern of a stage-3 step: gathers come and go, activations stack up and unwind.
  const auto step = [&] {
    std::vector<Buffer> activations;
    for (std::size_t layer = 0; layer < 12; ++layer) {
      const Buffer gathered =
          arena.allocate(7'077'888 + layer * 1024, {MemoryCategory::param_gathered, 0}, device->gather());
      activations.push_back(arena.allocate(3'145'728, {MemoryCategory::activation, 0}, stream));
    }
    while (!activations.empty()) {
      const Buffer grad = arena.allocate(7'077'888, {MemoryCategory::grad_full, 0}, stream);
      activations.pop_back();
    }
  };
  step();
  const std::size_t reserved = arena.reserved_bytes();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(arena.reserved_bytes(), reserved);
  // At most one segment of 20 MiB that is partly used, per stream.
  EXPECT_LE(reserved, arena.peak_bytes() + 2 * (std::size_t{20} << 20));
}

// What is reserved around a mapping to align it is given back: a run maps and unmaps segments for days.
TEST(HugePages, AMappingTakesNoMoreAddressesThanItHas) {
  const auto address_space = [] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  };
  constexpr int kTimes = 64;
  constexpr std::size_t kBytes = 3 * kHugePage + 5000;
  const std::size_t before = address_space();
  for (int i = 0; i < kTimes; ++i) {
    void* const data = map_aligned(kBytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kHugePage, 0U);
    EXPECT_LE(address_space(), before + kBytes + kHugePage / 2);
    std::memset(data, 1, kBytes);
    ASSERT_EQ(munmap(data, kBytes), 0);
  }
  EXPECT_LE(address_space(), before + kHugePage / 2);
}

}  // namespace
}  // namespace shardscope::device
