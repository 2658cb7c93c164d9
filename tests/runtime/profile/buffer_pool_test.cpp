#include "runtime/profile/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace shardscope::profile {
namespace {

TEST(BufferPool, IsBoundedCountsWhatItRefusesAndGivesZeroedMemory) {
  BufferPool pool(64, 2);
  std::uint8_t* a = pool.take(0);
  std::uint8_t* b = pool.take(0);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 8, 0U);
  EXPECT_EQ(pool.take(0), nullptr);
  EXPECT_EQ(pool.refused(), 1U);
  EXPECT_EQ(pool.made(), 2U);
  std::fill_n(a, 56, std::uint8_t{0xFF});  // also behind the records
  pool.filled(a, 48);
  pool.filled(b, 0);
  const auto filled = pool.collect();
  ASSERT_EQ(filled.size(), 2U);
  EXPECT_EQ(filled[0].data, a);
  EXPECT_EQ(filled[0].bytes, 48U);
  EXPECT_TRUE(pool.collect().empty());
  for (const auto& one : filled) pool.give(one.data);
  for (int i = 0; i < 2; ++i) {
    const std::uint8_t* again = pool.take(0);
    ASSERT_NE(again, nullptr);
    EXPECT_TRUE(std::all_of(again, again + 64, [](std::uint8_t byte) { return byte == 0; }));
  }
  EXPECT_EQ(pool.made(), 2U);
}

TEST(BufferPool, SaysSinceWhenBuffersAreHeld) {
  constexpr std::int64_t kNone = INT64_MAX;
  BufferPool pool(64, 3);
  EXPECT_EQ(pool.held_since(0), kNone);
  std::uint8_t* a = pool.take(100);
  std::uint8_t* b = pool.take(200);
  EXPECT_EQ(pool.held_since(0), 100);
  EXPECT_EQ(pool.held_since(100), 200) << "held for too long";
  pool.filled(a, 8);
  EXPECT_EQ(pool.held_since(0), 200);
  for (const auto& one : pool.collect()) pool.give(one.data);
  EXPECT_EQ(pool.take(300), a);
  EXPECT_EQ(pool.held_since(0), 200);
  pool.filled(b, 8);
  EXPECT_EQ(pool.held_since(0), 300);
  pool.filled(a, 8);
  EXPECT_EQ(pool.held_since(0), kNone);
}

TEST(BufferPool, IsSharedByManyThreadsAndOneReader) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  BufferPool pool(16, 8);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pool] {
      for (int done = 0; done < kEach;) {
        std::uint8_t* data = pool.take(0);
        if (data == nullptr) {
          std::this_thread::yield();
          continue;
        }
        data[0] = 1;
        pool.filled(data, 1);
        ++done;
      }
    });
  }
  int sum = 0;
  while (sum < kThreads * kEach) {
    for (const auto& one : pool.collect()) {
      sum += one.data[0];
      pool.give(one.data);
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kThreads * kEach);
  EXPECT_LE(pool.made(), 8U);
}

}  // namespace
}  // namespace shardscope::profile
