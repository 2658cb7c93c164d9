// What threads waited for a processor, from a folder as /proc/self/task is.
#include "instrumentation/processor_wait.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "instrumentation/emission_cost.h"

namespace shardscope::instrumentation {
namespace {

class ProcessorWaitTest : public ::testing::Test {
 protected:
  ProcessorWaitTest() {
    std::string name = (std::filesystem::temp_directory_path() / "shardscope-tasks-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ProcessorWaitTest() override { std::filesystem::remove_all(folder_); }
  void thread(const std::string& id, const std::string& name, std::int64_t waited_ns,
              std::int64_t ran_ns = 123456) {
    std::filesystem::create_directories(folder_ / id);
    std::ofstream(folder_ / id / "comm") << name << "\n";
    std::ofstream(folder_ / id / "schedstat") << ran_ns << " " << waited_ns << " 17\n";
  }
  std::filesystem::path folder_;
};

TEST_F(ProcessorWaitTest, IsTheSumOverThreadsSinceTheCallBefore) {
  thread("10", "zero_train", 1000);
  thread("11", "worker", 50);
  thread("12", kPublishThread, 10);
  ProcessorWait wait(folder_.string());
  EXPECT_FALSE(wait.take(1'000)) << "since when is not known";
  thread("10", "zero_train", 1300);
  thread("12", kPublishThread, 9000);
  thread("13", "worker", 20);  // began since
  const auto sample = wait.take(5'000);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->waited_ns, 300 + 20) << "what publishes does not count";
  EXPECT_EQ(sample->over_ns, 4'000);
  std::filesystem::remove_all(folder_ / "10");
  thread("11", "worker", 57);
  EXPECT_EQ(wait.take(6'000)->waited_ns, 7);
  thread("10", "worker", 5);  // another thread with the number of one that has ended
  EXPECT_EQ(wait.take(7'000)->waited_ns, 5);
}

TEST_F(ProcessorWaitTest, TimeUsedIsTheSumOverThreadsWithoutPublishingOnes) {
  thread("10", "zero_train", 0, 5'000'000);
  thread("11", kPublishThread, 0, 1'000'000);
  ProcessorWait wait(folder_.string());
  EXPECT_FALSE(wait.take(1'000));
  thread("10", "zero_train", 0, 12'600'000);
  thread("11", kPublishThread, 0, 90'000'000);
  EXPECT_EQ(wait.take(2'000)->used_ms, 7U);
  thread("10", "zero_train", 0, 13'000'000);
  EXPECT_EQ(wait.take(3'000)->used_ms, 1U) << "0.4 ms, and 0.6 ms of the sample before";
}

TEST_F(ProcessorWaitTest, IsNotKnownWhereTheKernelDoesNotCount) {
  std::filesystem::create_directories(folder_ / "10");
  ProcessorWait wait(folder_.string());
  EXPECT_FALSE(wait.take(1'000));
  EXPECT_FALSE(wait.take(2'000));
}

}  // namespace
}  // namespace shardscope::instrumentation
