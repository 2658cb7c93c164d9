// An observer sees what a thread emits now, on that thread and before it is kept; not what has a time of its
// own or is above the level.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shardscope/shardscope.h"

namespace shardscope {
namespace {

std::atomic<int> g_seen{0};
std::atomic<std::uint16_t> g_last{0};
std::thread::id g_thread;

void observe(const shardscope_event* event) {
  ++g_seen;
  g_last = event->kind;
  g_thread = std::this_thread::get_id();
}

class Observer : public testing::Test {
 protected:
  void SetUp() override {
    g_seen = 0;
    shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
    info.run_id = "observed";
    ASSERT_EQ(shardscope_run_create(&info, &run_), SHARDSCOPE_OK);
    shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
    options.endpoint = "tcp://127.0.0.1:1";  // no collector
    options.detail = SHARDSCOPE_DETAIL_MODULES;
    options.linger_s = 0;
    ASSERT_EQ(shardscope_start(run_, &options), SHARDSCOPE_OK) << shardscope_last_error();
    shardscope_observe(&observe);
  }
  void TearDown() override {
    shardscope_observe(nullptr);
    shardscope_run_destroy(run_);
  }
  shardscope_run* run_ = nullptr;
};

TEST_F(Observer, SeesWhatIsEmittedNowOnTheThreadThatEmits) {
  shardscope_step_begin(7);
  EXPECT_EQ(g_seen, 1);
  EXPECT_EQ(g_last, SHARDSCOPE_EVENT_STEP_BEGIN);
  EXPECT_EQ(g_thread, std::this_thread::get_id());
  std::thread other([] { shardscope_step_end(7, 0, 0); });
  const std::thread::id id = other.get_id();
  other.join();
  EXPECT_EQ(g_seen, 2);
  EXPECT_EQ(g_thread, id);
}

TEST_F(Observer, SeesNothingThatIsNotWantedOrHasAnotherTime) {
  shardscope_event event{};
  event.kind = SHARDSCOPE_EVENT_KERNEL_BEGIN;
  event.lane = SHARDSCOPE_LANE_COMPUTE;
  shardscope_emit(&event);  // above the level
  event.kind = UINT16_MAX;
  shardscope_emit(&event);  // no such kind
  event.kind = SHARDSCOPE_EVENT_STEP_BEGIN;
  event.lane = SHARDSCOPE_LANE_HOST;
  shardscope_emit_at(shardscope_now_ns(), &event);  // a profiler's own
  EXPECT_EQ(g_seen, 0);
  shardscope_observe(nullptr);
  shardscope_emit(&event);
  EXPECT_EQ(g_seen, 0);
}

}  // namespace
}  // namespace shardscope
