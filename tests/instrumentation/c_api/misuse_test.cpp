// The C interface used wrongly: every mistake is answered with a number and words, none with a crash.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shardscope/shardscope.h"

namespace {

std::string words() { return shardscope_last_error(); }

shardscope_run_info good_info() {
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  info.run_id = "misuse";
  return info;
}

struct OwnedRun {
  explicit OwnedRun(const shardscope_run_info& info = good_info()) {
    EXPECT_EQ(shardscope_run_create(&info, &run), SHARDSCOPE_OK) << words();
  }
  ~OwnedRun() { shardscope_run_destroy(run); }
  shardscope_run* run = nullptr;
};

TEST(Misuse, AFreshInfoNeedsOnlyARunId) {
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  shardscope_run* run = nullptr;
  EXPECT_EQ(shardscope_run_create(&info, &run), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("run_id"), std::string::npos) << words();
  EXPECT_EQ(run, nullptr);
  const OwnedRun good;
}

TEST(Misuse, ImpossibleValuesAreNamed) {
  const auto refused = [](auto change, const char* word) {
    shardscope_run_info info = good_info();
    change(info);
    shardscope_run* run = nullptr;
    EXPECT_EQ(shardscope_run_create(&info, &run), SHARDSCOPE_INVALID_ARGUMENT) << word;
    EXPECT_NE(words().find(word), std::string::npos) << words();
    shardscope_run_destroy(run);
  };
  refused([](auto& info) { info.rank = 1; }, "rank 1");
  refused([](auto& info) { info.world = 0; }, "world");
  refused([](auto& info) { info.stage = 4; }, "stage is 4");
  refused([](auto& info) { info.config_json = "{"; }, "config_json");
  refused([](auto& info) { info.size = 0; }, "size is 0");
  const std::string long_host(5000, 'x');
  refused([&](auto& info) { info.host = long_host.c_str(); }, "host has 5000 bytes");
}

TEST(Misuse, TablesMustHoldTogether) {
  OwnedRun run;
  shardscope_module module = SHARDSCOPE_MODULE_INIT;
  module.parent = 0;  // itself
  EXPECT_EQ(shardscope_add_module(run.run, &module, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  module.parent = SHARDSCOPE_NO_ID;
  std::uint32_t id = 99;
  ASSERT_EQ(shardscope_add_module(run.run, &module, &id), SHARDSCOPE_OK) << words();
  EXPECT_EQ(id, 0U);

  const std::int64_t huge[2] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  shardscope_param param = SHARDSCOPE_PARAM_INIT;
  param.shape = huge;
  param.dims = 2;
  EXPECT_EQ(shardscope_add_param(run.run, &param, &id), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("64 bits"), std::string::npos) << words();
  param.dims = 17;
  EXPECT_EQ(shardscope_add_param(run.run, &param, &id), SHARDSCOPE_INVALID_ARGUMENT);
  const std::int64_t small[1] = {10};
  param.shape = small;
  param.dims = 1;
  ASSERT_EQ(shardscope_add_param(run.run, &param, &id), SHARDSCOPE_OK) << words();
  EXPECT_EQ(shardscope_use_param(run.run, 0, id + 1), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_freeze_param(run.run, id + 1), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("parameter 1 has not been described"), std::string::npos) << words();
  EXPECT_EQ(shardscope_freeze_param(run.run, id), SHARDSCOPE_OK) << words();

  shardscope_slice slice = SHARDSCOPE_SLICE_INIT;
  slice.param_offset = 8;
  slice.elems = 3;
  EXPECT_EQ(shardscope_add_slice(run.run, &slice), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("10 elements"), std::string::npos) << words();
  // Pairs that begin three apart: 2, 3, 5, 6, 8 and 9, the last that there is; then one farther.
  slice.param_offset = 2;
  slice.elems = 6;
  slice.block_elems = 2;
  slice.stride_elems = 3;
  EXPECT_EQ(shardscope_add_slice(run.run, &slice), SHARDSCOPE_OK) << words();
  slice.param_offset = 3;
  EXPECT_EQ(shardscope_add_slice(run.run, &slice), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("ends behind its 10 elements"), std::string::npos) << words();
}

TEST(Misuse, StructuresOfOtherHeaders) {
  // An older header's structure is shorter: the fields it lacks keep their defaults.
  OwnedRun run;
  shardscope_module module = SHARDSCOPE_MODULE_INIT;
  module.size = offsetof(shardscope_module, type);
  std::memset(&module.type, 0xFF, sizeof module.type);  // would be a wild pointer
  EXPECT_EQ(shardscope_add_module(run.run, &module, nullptr), SHARDSCOPE_OK) << words();
  // A newer one's is longer: fine as long as it asks for nothing that is not known here.
  struct Newer {
    shardscope_module module = SHARDSCOPE_MODULE_INIT;
    std::uint64_t extra = 0;
  } newer;
  newer.module.size = sizeof newer;
  EXPECT_EQ(shardscope_add_module(run.run, &newer.module, nullptr), SHARDSCOPE_OK) << words();
  newer.extra = 1;
  EXPECT_EQ(shardscope_add_module(run.run, &newer.module, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("does not know"), std::string::npos) << words();
}

TEST(Misuse, NothingIsNull) {
  OwnedRun run;
  EXPECT_EQ(shardscope_run_create(nullptr, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_add_module(run.run, nullptr, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_add_param(nullptr, nullptr, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_start(nullptr, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_set_on_hold(nullptr, nullptr, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  shardscope_run_destroy(nullptr);
}

TEST(Misuse, TheOrderOfALife) {
  OwnedRun run, other;
  EXPECT_EQ(shardscope_finish(run.run, 0, nullptr), SHARDSCOPE_INVALID_STATE);
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = "carrier-pigeon";
  EXPECT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_FAILED);
  EXPECT_NE(words().find("carrier-pigeon"), std::string::npos) << words();
  options.endpoint = "ipc:///nowhere/that/exists";
  options.linger_s = 0;
  ASSERT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_OK) << words();
  EXPECT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_INVALID_STATE);
  EXPECT_EQ(shardscope_start(other.run, &options), SHARDSCOPE_INVALID_STATE);
  const shardscope_module module = SHARDSCOPE_MODULE_INIT;
  EXPECT_EQ(shardscope_add_module(run.run, &module, nullptr), SHARDSCOPE_OK) << "a run grows";
  EXPECT_EQ(shardscope_publish(run.run), SHARDSCOPE_OK) << words();
  EXPECT_EQ(shardscope_keep(SHARDSCOPE_DETAIL_STEPS, 0), SHARDSCOPE_INVALID_STATE);
  EXPECT_EQ(shardscope_message(run.run, 3, "x"), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_gate(8, 0), SHARDSCOPE_INVALID_ARGUMENT);
  ASSERT_EQ(shardscope_finish(run.run, 0, nullptr), SHARDSCOPE_OK) << words();
  EXPECT_EQ(shardscope_finish(run.run, 0, nullptr), SHARDSCOPE_INVALID_STATE);
  EXPECT_EQ(shardscope_add_module(run.run, &module, nullptr), SHARDSCOPE_INVALID_STATE);
  EXPECT_EQ(shardscope_publish(run.run), SHARDSCOPE_INVALID_STATE);
}

TEST(Misuse, AParameterIsInOneGroupAtMost) {
  OwnedRun run;
  const std::int64_t shape[1] = {4};
  shardscope_param param = SHARDSCOPE_PARAM_INIT;
  param.name = "w";
  param.dtype = "fp32";
  param.shape = shape;
  param.dims = 1;
  ASSERT_EQ(shardscope_add_param(run.run, &param, nullptr), SHARDSCOPE_OK) << words();
  const std::uint32_t params[2] = {0, 1};
  shardscope_param_group group = SHARDSCOPE_PARAM_GROUP_INIT;
  group.name = "all";
  group.count = 1;
  EXPECT_EQ(shardscope_add_param_group(run.run, &group), SHARDSCOPE_INVALID_ARGUMENT);
  group.params = params;
  group.count = 2;
  EXPECT_EQ(shardscope_add_param_group(run.run, &group), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("has parameter 1, which was not added"), std::string::npos) << words();
  group.count = 1;
  group.lr = std::nan("");
  EXPECT_EQ(shardscope_add_param_group(run.run, &group), SHARDSCOPE_INVALID_ARGUMENT);
  group.lr = 1;
  EXPECT_EQ(shardscope_add_param_group(run.run, &group), SHARDSCOPE_OK) << words();
  EXPECT_EQ(shardscope_add_param_group(run.run, &group), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("parameter w is in two parameter groups"), std::string::npos) << words();
}

TEST(Misuse, GroupsModelsAndReasonsMustBe) {
  OwnedRun run;
  const std::uint32_t ranks[2] = {0, 5};
  shardscope_group group = SHARDSCOPE_GROUP_INIT;
  EXPECT_EQ(shardscope_add_group(run.run, &group, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  group.ranks = ranks;
  group.count = 2;
  EXPECT_EQ(shardscope_add_group(run.run, &group, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  group.count = 1;
  group.purpose = 9;
  EXPECT_EQ(shardscope_add_group(run.run, &group, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  group.purpose = SHARDSCOPE_GROUP_EXPERT;
  EXPECT_EQ(shardscope_add_group(run.run, &group, nullptr), SHARDSCOPE_OK) << words();
  shardscope_module module = SHARDSCOPE_MODULE_INIT;
  module.model = 1;
  EXPECT_EQ(shardscope_add_module(run.run, &module, nullptr), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_NE(words().find("model 1"), std::string::npos) << words();
  EXPECT_EQ(shardscope_name_lane(run.run, 20, "x"), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_not_recorded(run.run, SHARDSCOPE_RECORDS_LOSS, ""), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_not_recorded(run.run, UINT64_C(1) << 40, "x"), SHARDSCOPE_INVALID_ARGUMENT);
  EXPECT_EQ(shardscope_not_recorded(run.run, SHARDSCOPE_RECORDS_LOSS, "x"), SHARDSCOPE_OK) << words();
}

TEST(Misuse, ImpossibleEventsAreCountedAndStayHere) {
  OwnedRun run;
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = "ipc:///nowhere/that/exists";
  options.linger_s = 0;
  ASSERT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_OK) << words();
  shardscope_counts before = SHARDSCOPE_COUNTS_INIT, after = SHARDSCOPE_COUNTS_INIT;
  ASSERT_EQ(shardscope_get_counts(run.run, &before), SHARDSCOPE_OK);
  shardscope_event event{};
  event.kind = 0;
  shardscope_emit(&event);
  event.kind = SHARDSCOPE_EVENT_LAST_ + 1;
  shardscope_emit(&event);
  event.kind = SHARDSCOPE_EVENT_STEP_BEGIN;
  event.lane = SHARDSCOPE_LANE_EXTRA_4 + 1;
  shardscope_emit(&event);
  event.lane = 0;
  shardscope_emit_at(-1, &event);
  shardscope_emit(&event);  // a good one
  ASSERT_EQ(shardscope_get_counts(run.run, &after), SHARDSCOPE_OK);
  EXPECT_EQ(after.invalid - before.invalid, 4U);
}

TEST(Misuse, ManyThreadsAtOnce) {
  OwnedRun run;
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = "ipc:///nowhere/that/exists";
  options.linger_s = 0;
  options.ring_events = 256;
  ASSERT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_OK) << words();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 500; ++i) {
        shardscope_step_begin(i);
        shardscope_step_end(i, 0, 1);
        std::uint32_t id = 0;
        if (shardscope_name_id(run.run, i % 2 == 0 ? "a" : "b", &id) != SHARDSCOPE_OK || id > 1) ++wrong;
        if (t == 0 && shardscope_gate(SHARDSCOPE_GATE_STEP, i) != SHARDSCOPE_OK) ++wrong;
        // Errors are each thread's own.
        if (shardscope_gate(100 + t, 0) != SHARDSCOPE_INVALID_ARGUMENT ||
            std::string(shardscope_last_error()).find(std::to_string(100 + t)) == std::string::npos) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Misuse, OneThreadInAGateAtATime) {
  OwnedRun run;
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.endpoint = "ipc:///nowhere/that/exists";
  options.linger_s = 0;
  ASSERT_EQ(shardscope_start(run.run, &options), SHARDSCOPE_OK) << words();
  std::atomic<int> refused{0}, passed{0}, other{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 2000; ++i) {
        switch (shardscope_gate(SHARDSCOPE_GATE_STEP, 0)) {
          case SHARDSCOPE_OK:
            ++passed;
            break;
          case SHARDSCOPE_INVALID_STATE:
            ++refused;
            break;
          default:
            ++other;
        }
      }
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(passed + refused, 4000);
}

}  // namespace
