// Streams of both kinds, events between them, times and memory of a CUDA device.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>

#include "instrumentation/emitter.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/gpu_monitor.h"
#include "instrumentation/ring.h"
#include "runtime/device/cuda/stamper.h"
#include "runtime/device/error.h"
#include "tests/gpu/gpu.h"

namespace shardscope::gpu {
namespace {

using device::Stream;

class CudaDeviceTest : public OnGpu {};

TEST_F(CudaDeviceTest, CopiesInOrderAcrossStreams) {
  constexpr std::size_t kBytes = 64 << 20;
  auto there = device->memory().allocate(kBytes, {}, device->copy());
  auto out = device->pinned().allocate(kBytes, {}, device->copy());
  auto back = device->pinned().allocate(kBytes, {}, device->compute());
  std::memset(out.data(), 0x5A, kBytes);
  const auto event = device->make_event();
  for (int round = 0; round < 20; ++round) {
    std::memset(back.data(), 0, kBytes);
    device->copy_async(there.data(), out.data(), kBytes, device->copy());
    device->copy().record(*event);
    device->compute().wait(*event);
    device->copy_async(back.data(), there.data(), kBytes, device->compute());
    device->compute().synchronize();
    ASSERT_EQ(std::memcmp(out.data(), back.data(), kBytes), 0) << round;
  }
}

TEST_F(CudaDeviceTest, HostStreamsAndCudaStreamsWaitForEachOther) {
  constexpr std::size_t kBytes = 8 << 20;
  auto there = device->memory().allocate(kBytes, {}, device->compute());
  auto host = device->pinned().allocate(kBytes, {}, device->compute());
  auto* bytes = static_cast<unsigned char*>(host.data());
  const auto filled = device->make_event();
  const auto copied = device->make_event();
  for (int round = 1; round < 50; ++round) {
    device->worker().wait(*copied);
    device->worker().run([=](const kernels::Exec&) { std::memset(bytes, round, kBytes); });
    device->worker().record(*filled);
    device->compute().wait(*filled);
    device->copy_async(there.data(), bytes, kBytes, device->compute());
    device->compute().record(*copied);
    device->worker().wait(*copied);
    device->worker().run([=](const kernels::Exec&) { std::memset(bytes, 0, kBytes); });
    device->worker().record(*filled);
    device->compute().wait(*filled);
    device->copy_async(bytes, there.data(), kBytes, device->compute());
    device->compute().record(*copied);
    copied->host_wait();
    ASSERT_EQ(bytes[0], round);
    ASSERT_EQ(bytes[kBytes - 1], round);
  }
}

TEST_F(CudaDeviceTest, FailureOfAHostStreamReachesWhoWaitsForIt) {
  const auto event = device->make_event();
  device->worker().run([](const kernels::Exec&) { throw BackendError("work", 0, "broke on purpose", ""); });
  device->worker().record(*event);
  // Either the wait or the synchronization reports it.
  EXPECT_THROW(
      {
        device->compute().wait(*event);
        device->compute().synchronize();
      },
      BackendError);
}

TEST_F(CudaDeviceTest, WaitMeansTheRecordMadeBeforeIt) {
  const auto event = device->make_event();
  std::promise<void> gate;
  device->worker().run([until = gate.get_future().share()](const kernels::Exec&) { until.wait(); });
  device->compute().record(*event);
  event->host_wait();
  device->worker().record(*event);
  EXPECT_FALSE(event->reached());
  device->compute().wait(*event);
  const auto after = device->make_event();
  device->compute().record(*after);
  EXPECT_FALSE(after->reached());
  gate.set_value();
  after->host_wait();
  EXPECT_TRUE(event->reached());
}

/// The device's end waits for stamps, and would wait forever for one whose time never comes.
TEST_F(CudaDeviceTest, AStampOfATimeThatNeverComesIsLeftOutAndHoldsUpNothing) {
  instrumentation::g_detail = static_cast<int>(instrumentation::Detail::kernels);
  const auto emitted = [](std::uint32_t a) {
    std::vector<instrumentation::Event> events;
    (void)instrumentation::RingRegistry::instance().drain(events);
    return std::any_of(events.begin(), events.end(), [a](const auto& event) { return event.a == a; });
  };
  const auto point = device->make_timed_event();
  device->worker().run([](const kernels::Exec&) { throw BackendError("work", 0, "broke on purpose", ""); });
  device->worker().record(*point);
  const std::array<device::Event*, 1> points{point.get()};
  device->compute().emit_timed({.kind = instrumentation::EventKind::param_status, .a = 70'001}, points,
                               [](instrumentation::Event&, std::span<const std::int64_t>) {});
  device->compute().emit({.kind = instrumentation::EventKind::param_status, .a = 70'002});
  device->compute().synchronize();
  auto ended = std::async(std::launch::async, [this] { device.reset(); });
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  instrumentation::g_detail = -1;
  EXPECT_TRUE(emitted(70'002));
}

TEST(CudaStamper, AnAnchorReadInAWideBracketDoesNotTakeTheOldOnesPlace) {
  using device::cuda::Stamper;
  EXPECT_TRUE(Stamper::is_more_accurate(20'000, 10'000, 0));  // as good as the one before
  EXPECT_TRUE(Stamper::is_more_accurate(90'000, 5'000, 500'000'000));
  EXPECT_FALSE(
      Stamper::is_more_accurate(30'000'000, 5'000, 500'000'000));  // 30 ms behind other streams' work
  EXPECT_TRUE(Stamper::is_more_accurate(30'000'000, 5'000, 160'000'000'000));
}

TEST_F(CudaDeviceTest, MemoryAddsUpToWhatTheDriverCounts) {
  const auto before = device->outside_bytes();
  ASSERT_TRUE(before.has_value());
  constexpr std::size_t kBytes = 512 << 20;
  auto buffer =
      device->memory().allocate(kBytes, {instrumentation::MemoryCategory::activation}, device->compute());
  const auto with = device->outside_bytes();
  ASSERT_TRUE(with.has_value());
  // What the driver keeps for itself may grow a little with a new segment; nothing else may.
  EXPECT_NEAR(static_cast<double>(*with), static_cast<double>(*before), 4 << 20);
  EXPECT_EQ(device->memory().used_bytes(instrumentation::MemoryCategory::activation), kBytes);
}

TEST_F(CudaDeviceTest, NvmlReportsThisDevice) {
  std::unique_ptr<instrumentation::GpuMonitor> monitor;
  try {
    monitor = std::make_unique<instrumentation::GpuMonitor>(device->pci_bus_id());
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto first = monitor->take(1);
  ASSERT_TRUE(first);
  const auto fields = instrumentation::as<instrumentation::EventKind::gpu_sample>(*first);
  ASSERT_NE(fields.sm_mhz, instrumentation::kNoId);
  EXPECT_GT(fields.sm_mhz, 100U);
  EXPECT_LT(fields.sm_mhz, 10'000U);
  EXPECT_LT(fields.celsius, 120U);
  EXPECT_GT(fields.energy_mj, 0) << "counted since Volta";
}

TEST_F(CudaDeviceTest, TooMuchMemoryIsAnErrorThatNamesTheBreakdown) {
  auto held =
      device->memory().allocate(1 << 20, {instrumentation::MemoryCategory::momentum}, device->compute());
  try {
    const auto all = device->memory().allocate(std::size_t{1} << 50, {}, device->compute());
    FAIL() << "a pebibyte was given";
  } catch (const BackendError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("momentum 1.00 MiB"));
  }
  const auto small = device->memory().allocate(1 << 20, {}, device->compute());
  EXPECT_TRUE(small);
}

}  // namespace
}  // namespace shardscope::gpu
