// The command of `watch --on-trigger`: what it gets, where its output goes, and what becomes of one that
// fails, hangs or cannot be started.
#include "app/cli/trigger_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::cli {
namespace {

using analysis::TriggerKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

class TriggerCommandTest : public testing::Test {
 protected:
  /// Runs `command` at each of these triggers, one after the other.
  void run(const std::string& command, const std::vector<TriggerKind>& kinds,
           TriggerCommand::Clock::duration limit = TriggerCommand::kLimit) {
    TriggerCommand at(
        command, "tcp://127.0.0.1:5711", [this](const std::string& problem) { problems_.push_back(problem); },
        limit);
    for (const TriggerKind kind : kinds) {
      at.add({.kind = kind, .step = 7, .text = "step 7 took 3 s"});
      const auto latest = TriggerCommand::Clock::now() + 20s;
      while (at.busy() && TriggerCommand::Clock::now() < latest) {
        at.next();
        std::this_thread::sleep_for(2ms);
      }
      EXPECT_FALSE(at.busy());
    }
  }
  std::vector<std::string> problems_;
};

TEST_F(TriggerCommandTest, ItsOutputGoesToStandardError) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run(R"(echo "$SHARDSCOPE_TRIGGER $SHARDSCOPE_TRIGGER_STEP: $SHARDSCOPE_TRIGGER_TEXT"; cat)",
      {TriggerKind::slow_step});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "") << "where the lines of --json are";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "slow_step 7: step 7 took 3 s\n");
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(TriggerCommandTest, AFailureIsReportedOnceForEachKind) {
  run("exit 22", {TriggerKind::slow_step, TriggerKind::slow_step, TriggerKind::stalled});
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("slow_step: the command ended with exit code 22"),
                                     HasSubstr("stalled: the command ended with exit code 22")));
}

TEST_F(TriggerCommandTest, AFailureAfterASuccessIsReportedAgain) {
  const std::string every_second = testing::TempDir() + "trigger_command_test-" + std::to_string(::getpid());
  run("rm " + every_second + " 2> /dev/null || { touch " + every_second + "; exit 1; }",
      {TriggerKind::slow_step, TriggerKind::slow_step, TriggerKind::slow_step});
  EXPECT_EQ(problems_.size(), 2U);
  static_cast<void>(std::remove(every_second.c_str()));
}

TEST_F(TriggerCommandTest, OneThatHangsIsEnded) {
  const auto began = TriggerCommand::Clock::now();
  run("sleep 100", {TriggerKind::slow_step}, 200ms);
  EXPECT_LT(TriggerCommand::Clock::now() - began, 15s);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("slow_step: the command was ended after 0.2s")));
}

TEST_F(TriggerCommandTest, OneThatIgnoresTheSignalIsKilled) {
  run("trap '' TERM; sleep 100", {TriggerKind::slow_step}, 200ms);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("was ended after 0.2s")));
}

TEST_F(TriggerCommandTest, AMachineThatStartsNoProcessDoesNotEndTheWatch) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // without a pipe there is no child
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  run("true", {TriggerKind::slow_step});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("slow_step: the command could not be started")));
}

}  // namespace
}  // namespace shardscope::cli
