// What a step loses by its host: by hand, and of runs that are played.
#include "runtime/simulate/host_lateness.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "instrumentation/event_fields.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using engine::testing::model_named;
using instrumentation::EventKind;

TEST(HostLateness, IsWhatTheStreamIsIdleWithoutWhatTheHostWaitsMeanwhile) {
  HostLateness late;
  late.queued(10, 10);
  late.queued(15, 12);  // queued before the stream was free
  EXPECT_EQ(late.take(), 0);
  late.queued(20, 50);
  EXPECT_EQ(late.take(), 30);
  late.host_waited(40, 70);
  late.host_waited(75, 80);
  late.queued(60, 90);  // 10 and 5 of these 30
  EXPECT_EQ(late.take(), 15);
  late.queued(90, 100);
  EXPECT_EQ(late.take(), 10) << "waits that are over count once";
}

/// By rank, of the second step.
std::vector<std::int64_t> host_late(const Play& play) {
  std::vector<std::int64_t> out;
  for (const auto& of_rank : play.events) {
    for (const Event& e : of_rank) {
      if (e.kind != EventKind::host_late) continue;
      const auto fields = instrumentation::as<EventKind::host_late>(e);
      if (fields.step == 1) out.push_back(fields.idle_ns);
    }
  }
  return out;
}

TEST(HostLateness, ADeviceThatWaitsForItsHostIsIdleForWhatTheStepIsLonger) {
  const DetailGuard detail(instrumentation::Detail::steps);
  const auto play = [](double launch_us) {
    SimulationOptions options = on_round_hardware();
    options.hardware.launch_us = launch_us;
    Play made(model_named("mlp"), make_config(0), 1, options);
    made.run(3);
    return std::pair(made.step_ns[1], host_late(made));
  };
  const auto [at_once_ns, none] = play(0);
  EXPECT_EQ(none, std::vector<std::int64_t>{0});
  const auto [late_ns, late] = play(1000);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_GT(late_ns, 5 * at_once_ns);
  EXPECT_NEAR(static_cast<double>(late[0]), static_cast<double>(late_ns - at_once_ns), 1e6);  // of one launch
}

TEST(HostLateness, WhatAHostWaitsForOthersIsNotItsOwnLateness) {
  const DetailGuard detail(instrumentation::Detail::steps);
  SimulationOptions options = on_round_hardware();
  options.variation.slowness = {1, 3};
  Play play(model_named("mlp"), make_config(1), 2, options);
  play.run(3);
  EXPECT_EQ(host_late(play), (std::vector<std::int64_t>{0, 0}));
}

}  // namespace
}  // namespace shardscope::simulate::testing
