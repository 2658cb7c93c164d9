// Levels of memory that a program gives (shardscope_memory_level): the categories of the recording are those
// last given, also where a ring was full in between. One rank, in this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "shardscope/shardscope.h"

namespace shardscope {
namespace {

namespace ev = instrumentation;

constexpr std::uint8_t kCategories = SHARDSCOPE_MEMORY_VARIANCE + 1;

/// Levels that differ from category to category and from round to round; every other one is as before.
std::int64_t level(std::uint8_t category, int round) {
  return 1000 * (category + 1) + (category % 2 == 0 ? 10 * round : 0);
}

TEST(MemoryLevels, CategoriesAreThoseLastGivenAfterAFullRing) {
  const std::string path = testing::TempDir() + "levels_" + std::to_string(getpid()) + ".zscope";
  {
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    options.record_path = path;
    collector::Collector collector(options);
    // Kept before the start, in a ring with room for four: no thread empties it.
    ASSERT_EQ(shardscope_keep(SHARDSCOPE_DETAIL_PARAMS, 4), SHARDSCOPE_OK) << shardscope_last_error();
    std::thread([&] {
      for (std::uint8_t c = 0; c < kCategories; ++c) {
        shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, c, level(c, 0));
      }
      shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
      info.run_id = "levels";
      shardscope_run* run = nullptr;
      ASSERT_EQ(shardscope_run_create(&info, &run), SHARDSCOPE_OK) << shardscope_last_error();
      shardscope_options start = SHARDSCOPE_OPTIONS_INIT;
      const std::string endpoint = collector.publish_endpoint();
      start.endpoint = endpoint.c_str();
      ASSERT_EQ(shardscope_start(run, &start), SHARDSCOPE_OK) << shardscope_last_error();
      for (int round = 1; round <= 2; ++round) {
        for (std::uint8_t c = 0; c < kCategories; ++c) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the ring is empty again
          shardscope_memory_level(SHARDSCOPE_POOL_DEVICE, c, level(c, round));
        }
      }
      EXPECT_EQ(shardscope_finish(run, 0, ""), SHARDSCOPE_OK);
      shardscope_run_destroy(run);
    }).join();
    collector.stop();
  }
  store::RecordingInfo opened;
  const store::Store data = store::open_recording(path, &opened);
  EXPECT_GE(data.dropped_count(), static_cast<std::uint64_t>(kCategories - 4)) << "the ring was not full";
  const store::MemorySample end = data.memory_at(0, ev::MemoryPool::device, data.end_ns());
  std::int64_t total = 0;
  for (std::uint8_t c = 0; c < kCategories; ++c) {
    EXPECT_EQ(end.bytes[c], level(c, 2)) << "category " << int{c};
    total += level(c, 2);
  }
  EXPECT_EQ(end.total(), total);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace shardscope
