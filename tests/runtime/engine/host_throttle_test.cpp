// How far the host may run ahead of the device.
#include "runtime/engine/host_throttle.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace shardscope::engine::host_throttle_test {
namespace {

using execution::EventPool;

constexpr int kDepth = 4;  ///< of CPU devices

TEST(HostThrottle, LetsTheDeviceBeFourModulesBehindThenWaitsUntilItIsTwo) {
  const auto device = device::make_cpu_device(nullptr);
  EventPool events(*device);
  HostThrottle throttle(*device, events);
  constexpr int kModules = 23;
  std::vector<std::promise<void>> let(kModules);
  std::atomic<int> done{0};
  for (int module = 0; module < kModules; ++module) {
    device->compute().run([&, module](const kernels::Exec&) {
      let[static_cast<std::size_t>(module)].get_future().wait();
      ++done;
    });
    // With nothing let through the first calls return all the same, or this test never ends.
    const bool waits = module >= kDepth && (module - kDepth) % (kDepth / 2 + 1) == 0;
    const int released = done.load();
    if (waits) {
      for (int m = module - kDepth; m <= module - kDepth / 2; ++m)
        let[static_cast<std::size_t>(m)].set_value();
    }
    throttle.module_queued();
    const int behind = module + 1 - done.load();
    EXPECT_LE(behind, kDepth) << "module " << module;
    if (waits) {
      EXPECT_EQ(behind, kDepth / 2) << "module " << module;
    } else {
      EXPECT_EQ(done.load(), released) << "nothing had to end for it";
    }
  }
  for (int module = 0; module < kModules; ++module) {
    try {
      let[static_cast<std::size_t>(module)].set_value();
    } catch (const std::future_error&) {  // let through already
    }
  }
  device->synchronize();
  EXPECT_EQ(done.load(), kModules);
}

}  // namespace
}  // namespace shardscope::engine::host_throttle_test
