// What attach says while no rank comes: what its processes wait for.
#include "app/cli/awaited_ranks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::cli {
namespace {

using std::chrono::seconds;

std::string text_of(const std::vector<CommandProcess>& now, const std::vector<CommandProcess>& before = {}) {
  return no_rank_text(before, now, seconds{60}, seconds{10});
}

TEST(AwaitedRanks, ArmedOnesAreNamedBeforeLaunchersWithWhatTheyComputed) {
  const CommandProcess launcher{.pid = 10, .has_torch = true, .has_folder = true, .processor_s = 50};
  const CommandProcess early{
      .pid = 11, .armed = true, .has_torch = true, .has_folder = true, .processor_s = 4};
  CommandProcess late = early;
  late.processor_s = 4.5;
  EXPECT_EQ(
      text_of({launcher, late}, {launcher, early}),
      "no rank has sent anything for 60 s: process 11 is armed and has made no model that is recorded yet "
      "(DDP, fully_shard, deepspeed.initialize, ...): loading, or waiting for each other; in the last 10 s "
      "they used 0.5 s of processor time. Where they are: py-spy dump --pid 11");
}

TEST(AwaitedRanks, OneThatHasNotImportedTorchHasNoModelToMake) {
  const CommandProcess rank{.pid = 11, .armed = true, .has_folder = true};
  EXPECT_NE(text_of({rank, rank}).find("processes 11, 11 are armed and have not imported PyTorch yet"),
            std::string::npos);
}

TEST(AwaitedRanks, WhatIsNotArmedHasItsReason) {
  const CommandProcess launcher{.pid = 10, .has_folder = true};
  const CommandProcess stranger{.pid = 12};
  EXPECT_EQ(
      text_of({launcher}),
      "no rank has sent anything for 60 s: process 10 runs Python and no rank: launchers, or a Python in "
      "which the package `shardscope` is not installed");
  EXPECT_EQ(
      text_of({stranger}),
      "no rank has sent anything for 60 s: process 12 runs without SHARDSCOPE_ATTACH in the environment: "
      "what starts them does not hand it on");
  EXPECT_EQ(text_of({}), "no rank has sent anything for 60 s: the command runs no Python on this host");
}

TEST(AwaitedRanks, FindsThePythonOfItsDescendants) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("SHARDSCOPE_ATTACH", "/tmp/folder-of-this-test", 1);
    execlp("sh", "sh", "-c", "python3 -c 'import time; time.sleep(30)'; true", nullptr);
    _exit(127);
  }
  std::vector<CommandProcess> found;
  for (int tries = 0; tries < 200 && found.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    found = python_processes(getpid(), "/tmp/folder-of-this-test");
  }
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found.front().pid, child) << "that is the shell";
  EXPECT_TRUE(found.front().has_folder);
  EXPECT_FALSE(found.front().armed);
  EXPECT_TRUE(python_processes(child, "/tmp/another-folder").empty() ||
              !python_processes(child, "/tmp/another-folder").front().has_folder);
  kill(found.front().pid, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(python_processes(getpid(), "/tmp/folder-of-this-test").empty());
}

TEST(AwaitedRanks, ItIsSaidAfterAMinuteAndAfterTen) {
  AwaitedRanks awaited("/tmp/none");
  const auto began = std::chrono::steady_clock::now();
  const auto at = [&](int s) { return awaited.look(began + seconds(s) + std::chrono::milliseconds(100)); };
  EXPECT_EQ(at(1) + at(55), "");
  EXPECT_NE(at(60).find("for 60 s"), std::string::npos);
  EXPECT_EQ(at(61) + at(300), "");
  EXPECT_NE(at(601).find("for 601 s"), std::string::npos);
  EXPECT_EQ(at(602) + at(6000), "");
}

}  // namespace
}  // namespace shardscope::cli
