// What a simulation refuses, and files of hardware that are not good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using engine::testing::model_named;
using ::testing::HasSubstr;

TEST(RefusedSimulation, OfWhatItCannotKnow) {
  const auto message = [](const Json& config, std::uint32_t world, const SimulationOptions& options) {
    try {
      Play play(model_named("mlp"), config, world, options);
      play.run(1);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Json zenflow = make_config(3);
  zenflow["zero_optimization"].update(
      {{"offload_optimizer", {{"device", "cpu"}}}, {"zenflow", Json::object()}});
  EXPECT_THAT(message(zenflow, 2, on_round_hardware()), HasSubstr("zenflow.update_interval \"auto\""));
  Json nvme = make_config(3);
  nvme["zero_optimization"]["offload_optimizer"] = {{"device", "nvme"}, {"nvme_path", "/tmp"}};
  SimulationOptions no_disks = on_round_hardware();
  no_disks.hardware.nvme = {};
  EXPECT_THAT(message(nvme, 2, no_disks), HasSubstr("has no disks"));
  EXPECT_EQ(message(nvme, 2, on_round_hardware()), "");
  EXPECT_THAT(message(make_config(3), 12, on_round_hardware()), HasSubstr("12 ranks do not fill nodes of 8"));
  SimulationOptions small = on_round_hardware();
  small.hardware.memory_gib = 1.0 / 1024;
  EXPECT_THAT(message(make_config(0), 1, small), HasSubstr("device memory exhausted"));
  EXPECT_EQ(message(make_config(0), 1, on_round_hardware()), "");
}

// Beyond 64 bits of nanoseconds a straggler was the fastest rank, and a link without a rate cost nothing.
TEST(RefusedSimulation, OfTimesThatNothingTakes) {
  const auto message = [](const SimulationOptions& options, std::int64_t steps = 1) {
    try {
      Play play(model_named("mlp"), make_config(3), 2, options);
      play.run(steps);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const double tiny : {1e-300, 1e-30, 1e-14}) {
    for (double Hardware::*rate : {&Hardware::f32_tflops, &Hardware::memory_gb_per_s}) {
      SimulationOptions slow = on_round_hardware();
      slow.hardware.*rate = tiny;
      EXPECT_THAT(message(slow), HasSubstr("a day or more for one operation")) << tiny;
    }
    SimulationOptions slow = on_round_hardware();
    slow.hardware.inside.gb_per_s = tiny;
    EXPECT_THAT(message(slow), HasSubstr("a day or more for one operation")) << tiny;
  }
  for (const double huge : {1e300, 1e12}) {
    SimulationOptions late = on_round_hardware(), launched = late, straggler = late, link = late;
    late.hardware.inside.latency_us = huge;
    launched.hardware.launch_us = huge;
    straggler.variation.slowness = {1, huge};
    link.variation.link_slowness = {1, huge * 1e6};
    for (const SimulationOptions& options : {late, launched, straggler, link})
      EXPECT_THAT(message(options), HasSubstr("a day or more for one operation")) << huge;
  }
  // An hour for each of thousands of operations.
  SimulationOptions patient = on_round_hardware();
  patient.hardware.kernel_us = 3600e6;
  EXPECT_EQ(message(patient), "");
  EXPECT_THAT(message(patient, 2000), HasSubstr("more than a year"));
}

TEST(HardwareTest, FilesAreCheckedKeyByKey) {
  const std::string good =
      R"({"f32_tflops": 1, "f16_tflops": 2, "memory_gb_per_s": 3, "host_memory_gb_per_s": 4,
    "inside": {"gb_per_s": 5}, "between": {"gb_per_s": 6, "latency_us": 7}, "host": {"gb_per_s": 8}})";
  const Hardware h = parse_hardware(good, "mine.json");
  EXPECT_EQ(h.name, "mine");
  EXPECT_EQ(h.between.latency_us, 7);
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    try {
      static_cast<void>(parse_hardware(text, "mine.json"));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("f16_tflops", "f16_tflop"), HasSubstr("f16_tflop"));
  EXPECT_THAT(message("\"memory_gb_per_s\": 3", "\"memory_gb_per_s\": 0"), HasSubstr("memory_gb_per_s"));
  EXPECT_THAT(message("\"gb_per_s\": 6", "\"gb_per_s\": \"fast\""), HasSubstr("between.gb_per_s"));
  EXPECT_THAT(message("{\"f32", "[\"f32"), HasSubstr("mine.json"));
  EXPECT_THAT(message("\"gb_per_s\": 6", "\"gb_per_s\": 1e999"),
              HasSubstr("mine.json: between.gb_per_s: is 1e999, which is beyond every number"));
  EXPECT_THAT(message("{\"gb_per_s\": 8}}", "{\"gb_per_s\": 8}}" + std::string(1, '\0')),
              HasSubstr("mine.json: is not JSON: holds a zero byte"));
  EXPECT_THROW(static_cast<void>(load_hardware("z100", SHARDSCOPE_HARDWARE)), std::invalid_argument);
  for (const char* name : {"a100", "h100", "h200"}) {
    EXPECT_EQ(load_hardware(name, SHARDSCOPE_HARDWARE).name, name);
  }
}

}  // namespace
}  // namespace shardscope::simulate::testing
