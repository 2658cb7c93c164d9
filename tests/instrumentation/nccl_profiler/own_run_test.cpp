// The plugin in a job that knows nothing of Shardscope: it makes a run of its own, one rank for each process.
// And in one that has a run by the C interface and says which collective each call is of: it joins that.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "instrumentation/event_fields.h"

extern char** environ;

namespace shardscope {
namespace {

namespace ev = instrumentation;
constexpr std::uint32_t kWorld = 2, kCollectives = 10;

pid_t start(std::vector<std::string> command, const std::vector<std::string>& variables) {
  std::vector<char*> argv, env;
  for (std::string& part : command) argv.push_back(part.data());
  argv.push_back(nullptr);
  std::vector<std::string> own = variables;
  for (std::string& variable : own) env.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) env.push_back(*variable);
  env.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), env.data()), 0);
  return pid;
}

TEST(NcclOwnRun, AJobThatOnlyUsesNcclIsRecorded) {
  const std::string path = testing::TempDir() + "nccl_" + std::to_string(getpid()) + ".zscope";
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.record_path = path;
  collector::Collector collector(options);
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    children.push_back(
        start({NCCL_PLAYER, std::to_string(rank), std::to_string(kWorld), std::to_string(kCollectives)},
              {"SHARDSCOPE_ENDPOINT=" + collector.publish_endpoint(), "SHARDSCOPE_RUN_ID=played",
               "SHARDSCOPE_NCCL_LEVEL=kernels"}));
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  collector.stop();
  EXPECT_EQ(collector.status().rejected, 0U);
  const store::Store store = store::open_recording(path, nullptr);
  std::filesystem::remove(path);
  ASSERT_TRUE(store.has_tables());
  EXPECT_EQ(store.tables().run_id, "played");
  EXPECT_EQ(store.tables().world, kWorld);
  ASSERT_EQ(store.ranks().size(), kWorld);
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    EXPECT_TRUE(store.ranks()[rank].finished);
    EXPECT_EQ(store.instant_count(rank, ev::EventKind::nccl_collective), kCollectives + 1);
    EXPECT_EQ(store.instant_count(rank, ev::EventKind::nccl_kernel), kCollectives + 1);
    EXPECT_EQ(store.instant_count(rank, ev::EventKind::collective_submitted), kCollectives + 1);
    // One of two that overlap has a span.
    const auto gathers = store.spans({rank, ev::StreamId::gather}, 0);
    EXPECT_EQ(gathers.size(), kCollectives / 2);
    EXPECT_EQ(store.spans({rank, ev::StreamId::reduce}, 0).size(), kCollectives / 2);
    ASSERT_FALSE(gathers.empty());
    EXPECT_EQ(gathers[0].code, static_cast<std::uint8_t>(ev::CollectiveOp::all_gather));
    EXPECT_EQ(gathers[0].v0, 100 * kWorld) << "elements of the type of the call";
    EXPECT_EQ(gathers[0].v1, 200 * kWorld);
    EXPECT_EQ(gathers[0].c, ev::collective_code(1, ev::CollectiveScope::world, kWorld));
    EXPECT_NE(gathers[0].end_ns, store::kOpen);
  }
  EXPECT_EQ(
      std::count_if(store.messages().begin(), store.messages().end(),
                    [](const store::Message& m) { return m.text.find("overlap") != std::string::npos; }),
      kWorld);
}

TEST(NcclOwnRun, ARunOfTheProcessHasTheNumbersThatTheProgramSays) {
  const std::string path = testing::TempDir() + "nccl_joined_" + std::to_string(getpid()) + ".zscope";
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.record_path = path;
  collector::Collector collector(options);
  constexpr std::uint32_t kFirst = 700;
  const pid_t child =
      start({NCCL_PLAYER, "0", "1", std::to_string(kCollectives), std::to_string(kFirst)},
            {"SHARDSCOPE_ENDPOINT=" + collector.publish_endpoint(), "SHARDSCOPE_NCCL_RUN=join"});
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  collector.stop();
  const store::Store store = store::open_recording(path, nullptr);
  std::filesystem::remove(path);
  EXPECT_EQ(store.tables().run_id, "joined");
  std::vector<std::uint32_t> said;
  for (const ev::Event& event : store.instants_of(0, ev::EventKind::nccl_collective))
    said.push_back(ev::as<ev::EventKind::nccl_collective>(event).sequence);
  std::ranges::sort(said);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < kCollectives; ++i) expected.push_back(kFirst + i);
  expected.push_back(ev::kNoId);  // of a call of which nothing was said
  EXPECT_EQ(said, expected);
  EXPECT_EQ(store.instant_count(0, ev::EventKind::collective_submitted), 0U) << "those are the program's";
}

}  // namespace
}  // namespace shardscope
