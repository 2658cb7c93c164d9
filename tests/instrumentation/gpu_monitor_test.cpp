// The state of a GPU, read from a library with NVML's interface (nvml_stand_in.cpp).
#include "instrumentation/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "instrumentation/event_fields.h"

namespace shardscope::instrumentation {
namespace {

constexpr const char* kGpu = "0000:17:00.0";

class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() { setenv("SHARDSCOPE_NVML", NVML_STAND_IN, 1); }
  ~GpuMonitorTest() override {
    unsetenv("SHARDSCOPE_NVML");
    unsetenv("SHARDSCOPE_STAND_IN_ENERGY");
  }
  static std::string why_not(const std::string& id) {
    try {
      const GpuMonitor monitor(id);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(GpuMonitorTest, ASampleHasWhatNvmlReports) {
  GpuMonitor monitor(kGpu);
  const auto first = monitor.take(1'000);
  const auto second = monitor.take(5'000);
  ASSERT_TRUE(first && second);
  const auto fields = as<EventKind::gpu_sample>(*second);
  EXPECT_EQ(fields.sm_mhz, 1410U);
  EXPECT_EQ(fields.memory_mhz, 2619U);
  EXPECT_EQ(fields.celsius, 71U);
  EXPECT_TRUE(fields.power_limited);
  EXPECT_FALSE(fields.too_hot);
  EXPECT_EQ(fields.energy_mj - as<EventKind::gpu_sample>(*first).energy_mj, 250'000);
  EXPECT_EQ(as<EventKind::gpu_sample>(*first).over_ns, 0) << "there is no sample before";
  EXPECT_EQ(fields.over_ns, 4'000);
}

TEST_F(GpuMonitorTest, WhatIsNotReportedIsAbsent) {
  setenv("SHARDSCOPE_STAND_IN_ENERGY", "absent", 1);
  GpuMonitor monitor(kGpu);
  const auto sample = monitor.take(1'000);
  ASSERT_TRUE(sample) << "its clocks are reported";
  EXPECT_EQ(as<EventKind::gpu_sample>(*sample).energy_mj, 0);
}

TEST_F(GpuMonitorTest, ErrorsNameTheCauseAndWhatToDo) {
  EXPECT_EQ(why_not("0000:18:00.0"), "NVML has no GPU at 0000:18:00.0: Not Found");
  setenv("SHARDSCOPE_NVML", "/nowhere/libnvidia-ml.so", 1);
  const std::string missing = why_not(kGpu);
  EXPECT_NE(missing.find("/nowhere/libnvidia-ml.so"), std::string::npos) << missing;
  EXPECT_NE(missing.find("name its file in SHARDSCOPE_NVML"), std::string::npos) << missing;
  setenv("SHARDSCOPE_NVML", "libc.so.6", 1);
  EXPECT_EQ(why_not(kGpu), "the NVML found has no nvmlInit_v2");
}

}  // namespace
}  // namespace shardscope::instrumentation
