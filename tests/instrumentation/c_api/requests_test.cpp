// What a viewer asks of a running rank is answered by the program's own function, and recorded.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "app/store/store.h"
#include "shardscope/shardscope.h"

namespace shardscope {
namespace {

using namespace std::chrono_literals;
using collector::Command;

struct Program {
  std::atomic<bool> begun{false};
  std::atomic<int> asked{0};
  std::atomic<bool> held{false};  ///< its answers take as long as this is true
  std::atomic<bool> claims_too_much{false};
  std::thread::id training = std::this_thread::get_id();
  std::atomic<bool> on_training_thread{false};
};

std::size_t answer(void* context, std::int32_t request, char* text, std::size_t capacity) {
  auto& program = *static_cast<Program*>(context);
  program.on_training_thread = std::this_thread::get_id() == program.training;
  program.begun = true;
  program.held.wait(true);
  const std::string words = request == SHARDSCOPE_REQUEST_STACKS ? "forward at model.py:7" : "?";
  std::memcpy(text, words.data(), words.size());
  ++program.asked;
  return program.claims_too_much ? capacity + 1 : words.size();
}

class Requests : public testing::Test {
 protected:
  Requests() {
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    collector_.emplace(options);
    shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
    info.run_id = "asked";
    EXPECT_EQ(shardscope_run_create(&info, &run_), SHARDSCOPE_OK);
  }
  ~Requests() override { shardscope_run_destroy(run_); }
  void start() {
    shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
    const std::string endpoint = collector_->publish_endpoint();
    options.endpoint = endpoint.c_str();
    ASSERT_EQ(shardscope_start(run_, &options), SHARDSCOPE_OK) << shardscope_last_error();
    viewer_.emplace(collector_->view_endpoint());
    ASSERT_TRUE(eventually([&] { return !store_.ranks().empty() && store_.ranks()[0].connected; }));
  }
  template <typename Condition>
  bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      (void)viewer_->poll(store_, 5ms);
    }
    return true;
  }
  void ask() {
    Command command;
    command.kind = Command::Kind::ask;
    viewer_->send(command);
  }
  /// Texts of rank 0 that answer.
  std::size_t answers(const std::string& text) {
    std::size_t count = 0;
    for (const store::Message& message : store_.messages()) count += message.text == text ? 1 : 0;
    return count;
  }

  std::optional<collector::Collector> collector_;
  std::optional<collector::Viewer> viewer_;
  store::Store store_;
  shardscope_run* run_ = nullptr;
};

TEST_F(Requests, TheProgramAnswersOnAnotherThread) {
  Program program;
  ASSERT_EQ(shardscope_set_on_request(run_, answer, &program), SHARDSCOPE_OK);
  start();
  ask();
  EXPECT_TRUE(eventually([&] { return answers("stacks: forward at model.py:7") == 1; }));
  EXPECT_FALSE(program.on_training_thread);
  ask();
  EXPECT_TRUE(eventually([&] { return answers("stacks: forward at model.py:7") == 2; }));
  EXPECT_EQ(program.asked, 2);
}

TEST_F(Requests, WithoutAFunctionTheAnswerIsThatThereIsNone) {
  start();
  ask();
  const std::string none = "stacks: none: this program has no function that answers requests";
  EXPECT_TRUE(eventually([&] { return answers(none) == 1; }));
  Program program;
  ASSERT_EQ(shardscope_set_on_request(run_, answer, &program), SHARDSCOPE_OK);
  ask();
  EXPECT_TRUE(eventually([&] { return answers("stacks: forward at model.py:7") == 1; }));
  ASSERT_EQ(shardscope_set_on_request(run_, nullptr, nullptr), SHARDSCOPE_OK);
  ask();
  EXPECT_TRUE(eventually([&] { return answers(none) == 2; }));
}

TEST_F(Requests, ACommandIsCarriedOutWhileAnAnswerIsBeingMade) {
  Program program;
  program.held = true;
  ASSERT_EQ(shardscope_set_on_request(run_, answer, &program), SHARDSCOPE_OK);
  start();
  ask();
  ASSERT_TRUE(eventually([&] { return program.begun.load(); }));
  Command detail;
  detail.kind = Command::Kind::set_detail;
  detail.detail = instrumentation::Detail::steps;
  viewer_->send(detail);
  EXPECT_TRUE(eventually([&] { return shardscope_enabled(SHARDSCOPE_DETAIL_PHASES) == 0; }));
  EXPECT_EQ(program.asked, 0);
  program.held = false;
  program.held.notify_all();
  EXPECT_TRUE(eventually([&] { return answers("stacks: forward at model.py:7") == 1; }));
}

TEST_F(Requests, AnAnswerThatHasMoreThanItsRoomIsCutAndSaysSo) {
  Program program;
  program.claims_too_much = true;
  ASSERT_EQ(shardscope_set_on_request(run_, answer, &program), SHARDSCOPE_OK);
  start();
  ask();
  std::size_t size = 0;
  EXPECT_TRUE(eventually([&] {
    for (const store::Message& message : store_.messages())
      if (message.text.rfind("stacks: forward at model.py:7", 0) == 0) size = message.text.size();
    return size != 0;
  }));
  const std::string note = "\n(cut: the whole answer has 16001 bytes)";
  EXPECT_EQ(size, std::string("stacks: ").size() + 16000 + note.size());
}

TEST_F(Requests, TheEndWaitsForTheAnswerThatIsBeingMade) {
  Program program;
  program.held = true;
  ASSERT_EQ(shardscope_set_on_request(run_, answer, &program), SHARDSCOPE_OK);
  start();
  ask();
  ASSERT_TRUE(eventually([&] { return program.begun.load(); }));
  std::thread release([&] {
    std::this_thread::sleep_for(200ms);  // so that destroy() has begun to wait, most of the time
    program.held = false;
    program.held.notify_all();
  });
  shardscope_run_destroy(std::exchange(run_, nullptr));
  EXPECT_EQ(program.asked, 1);
  release.join();
}

TEST(RequestsMisuse, NoRun) {
  EXPECT_EQ(shardscope_set_on_request(nullptr, answer, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardscope
