// Borrowed device events: used again, and order between streams kept while they are.
#include "runtime/execution/event_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "runtime/device/device.h"

namespace shardscope::execution {
namespace {

class EventPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<device::Device> device_ = device::make_cpu_device(nullptr);
  EventPool pool_{*device_};
};

TEST_F(EventPoolTest, WhatWasGivenBackIsTakenAgain) {
  std::unique_ptr<device::Event> first = pool_.take();
  const device::Event* const address = first.get();
  std::unique_ptr<device::Event> second = pool_.take();
  EXPECT_NE(second.get(), address);
  pool_.give_back(std::move(first));
  EXPECT_EQ(pool_.take().get(), address);
}

/// The event goes back at once, is recorded anew for the next order, and the first wait still holds.
TEST_F(EventPoolTest, AnEventThatIsUsedAgainKeepsEarlierWaits) {
  device::Stream &compute = device_->compute(), &worker = device_->worker();
  std::promise<void> gate;
  std::vector<int> order;  // only touched by work that is ordered
  compute.run([until = gate.get_future().share()](const kernels::Exec&) { until.wait(); });
  compute.run([&](const kernels::Exec&) { order.push_back(1); });
  pool_.order(compute, worker);
  worker.run([&](const kernels::Exec&) { order.push_back(2); });
  pool_.order(worker, compute);
  compute.run([&](const kernels::Exec&) { order.push_back(3); });
  pool_.order(compute, worker);
  worker.run([&](const kernels::Exec&) { order.push_back(4); });
  gate.set_value();
  compute.synchronize();
  worker.synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace shardscope::execution
