// What a collector costs while it is idle: wakes of its threads, which the system counts exactly.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/app/collector/raw_socket.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

/// How often threads of this process have gone to sleep so far. Of those that have ended nothing is known.
std::uint64_t sleeps() {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "status");
    for (std::string word; file >> word;) {
      std::uint64_t count = 0;
      if (word == "voluntary_ctxt_switches:" && file >> count) sum += count;
    }
  }
  return sum;
}

double sleeps_per_s() {
  const auto begin = Clock::now();
  const std::uint64_t before = sleeps();
  std::this_thread::sleep_for(1500ms);
  return static_cast<double>(sleeps() - before) / std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Turns, commits and the recorder's looks are 11 a second; looks at connections would be 40 more.
constexpr double kMost = 20;

TEST(Idle, ACollectorWithoutConnectionsSleeps) {
  Collector collector(local());
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(sleeps_per_s(), kMost);
  const int stranger = connect_raw(collector.publish_endpoint());
  ASSERT_GE(stranger, 0);
  std::this_thread::sleep_for(100ms);
  EXPECT_GT(sleeps_per_s(), kMost) << "connections are checked while there are any";
  close(stranger);
  EXPECT_TRUE(eventually([] { return sleeps_per_s() < kMost; }, 15s)) << "once it has disconnected";
}

}  // namespace
}  // namespace shardscope::collector
