// Streams and events keep CUDA's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/error.h"

namespace shardscope::device {
namespace {

class StreamTest : public ::testing::Test {
 protected:
  /// Queues work that holds `stream` until release() is called.
  std::promise<void> hold(Stream& stream) {
    std::promise<void> gate;
    stream.run([until = gate.get_future().share()](const kernels::Exec&) { until.wait(); });
    return gate;
  }
  std::unique_ptr<Device> device = make_cpu_device(nullptr);
};

TEST_F(StreamTest, RunsInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i)
    device->compute().run([&order, i](const kernels::Exec&) { order.push_back(i); });
  device->compute().synchronize();
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(StreamTest, StreamsOverlap) {
  std::promise<void> compute_came;
  std::promise<void> gather_came;
  // Each waits for the other: possible only when both run at once.
  device->compute().run([&](const kernels::Exec&) {
    compute_came.set_value();
    gather_came.get_future().wait();
  });
  device->gather().run([&](const kernels::Exec&) {
    compute_came.get_future().wait();
    gather_came.set_value();
  });
  device->synchronize();
}

TEST_F(StreamTest, WaitOrdersTwoStreams) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> value{0};
    const auto event = device->make_event();
    device->gather().run([&](const kernels::Exec&) { value = 1; });
    device->gather().record(*event);
    int seen = -1;
    device->compute().wait(*event);
    device->compute().run([&](const kernels::Exec&) { seen = value; });
    device->compute().synchronize();
    ASSERT_EQ(seen, 1);
    device->gather().synchronize();
  }
}

TEST_F(StreamTest, EventNeverRecordedIsReached) {
  const auto event = device->make_event();
  EXPECT_TRUE(event->reached());
  event->host_wait();
  device->compute().wait(*event);
  device->compute().synchronize();
}

TEST_F(StreamTest, WaitMeansTheRecordMadeBeforeIt) {
  const auto event = device->make_event();
  auto first = hold(device->gather());
  device->gather().record(*event);
  bool passed_first = false;
  device->compute().wait(*event);
  device->compute().run([&](const kernels::Exec&) { passed_first = true; });
  const auto after_first = device->make_event();
  device->compute().record(*after_first);
  // Recording again, on a stream that is held, changes nothing for who waits already.
  auto second = hold(device->reduce());
  device->reduce().record(*event);
  EXPECT_FALSE(event->reached());
  EXPECT_FALSE(after_first->reached());
  first.set_value();
  after_first->host_wait();
  EXPECT_TRUE(passed_first);
  EXPECT_FALSE(event->reached()) << "the second record is still held";
  second.set_value();
  event->host_wait();
  EXPECT_TRUE(event->reached());
}

TEST_F(StreamTest, RecordingElsewhereDoesNotReleaseAnEarlierWait) {
  const auto event = device->make_event();
  auto held = hold(device->gather());
  device->gather().record(*event);
  std::atomic<bool> passed{false};
  device->compute().wait(*event);
  device->compute().run([&](const kernels::Exec&) { passed = true; });
  device->reduce().record(*event);  // reached at once
  event->host_wait();
  device->copy().synchronize();
  EXPECT_FALSE(passed) << "the waiter was let go by a record made after its wait";
  held.set_value();
  device->compute().synchronize();
  EXPECT_TRUE(passed);
}

TEST_F(StreamTest, EventMayGoWhileAStreamWaitsForIt) {
  auto held = hold(device->gather());
  {
    const auto event = device->make_event();
    device->gather().record(*event);
    device->compute().wait(*event);
  }
  held.set_value();
  device->synchronize();
}

TEST_F(StreamTest, FailureIsKeptAndLaterWorkSkipped) {
  const auto before = device->make_event();
  const auto after = device->make_event();
  bool ran = false;
  device->compute().record(*before);
  device->compute().run([](const kernels::Exec&) { throw std::runtime_error("first"); });
  device->compute().run([&](const kernels::Exec&) { ran = true; });
  device->compute().run([](const kernels::Exec&) { throw std::runtime_error("second"); });
  device->compute().record(*after);
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([&] { device->compute().synchronize(); }), "first");
  EXPECT_EQ(message([&] { after->host_wait(); }), "first");
  EXPECT_EQ(message([&] { before->host_wait(); }), "") << "what ran before the failure is whole";
  EXPECT_FALSE(ran);
  EXPECT_EQ(message([&] { device->gather().synchronize(); }), "");
}

TEST_F(StreamTest, FailureReachesTheStreamsThatDependOnIt) {
  const auto event = device->make_event();
  bool ran = false;
  device->gather().run([](const kernels::Exec&) { throw std::runtime_error("gather failed"); });
  device->gather().record(*event);
  device->compute().wait(*event);
  device->compute().run([&](const kernels::Exec&) { ran = true; });
  EXPECT_THROW(device->compute().synchronize(), std::runtime_error);
  EXPECT_FALSE(ran);
  EXPECT_THROW(device->synchronize(), std::runtime_error);
}

TEST_F(StreamTest, WorkMayNotWaitForItsOwnStream) {
  device->compute().run([&](const kernels::Exec&) { device->compute().synchronize(); });
  EXPECT_THROW(device->compute().synchronize(), BackendError);
}

TEST_F(StreamTest, DestructionRunsWhatIsQueued) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) {
    device->copy().run([&](const kernels::Exec&) { ++ran; });
    const auto event = device->make_event();
    device->copy().record(*event);
    device->compute().wait(*event);
    device->compute().run([&](const kernels::Exec&) { ++ran; });
  }
  device.reset();
  EXPECT_EQ(ran, 200);
}

TEST_F(StreamTest, CapturedStateIsFreedOnceRun) {
  auto token = std::make_shared<int>(1);
  device->compute().run([token](const kernels::Exec&) {});
  device->compute().synchronize();
  EXPECT_EQ(token.use_count(), 1) << "synchronize returned while the work's captures still lived";
}

TEST_F(StreamTest, CopiesBetweenHostAndDevice) {
  std::vector<std::int32_t> in(1000, 7);
  std::vector<std::int32_t> out(1000, 0);
  const Buffer buffer = device->memory().allocate(4000, {}, device->copy());
  device->copy_async(buffer.data(), in.data(), 4000, device->copy());
  device->copy_async(out.data(), buffer.data(), 4000, device->copy());
  device->copy().synchronize();
  EXPECT_EQ(in, out);
}

TEST_F(StreamTest, RandomGraphsOfStreamsKeepTheirOrder) {
  // Every item records which items it must follow; the run must agree.
  std::vector<Stream*> streams{&device->compute(), &device->gather(), &device->reduce(), &device->copy()};
  std::uint32_t random = 12345;
  const auto next = [&](std::uint32_t n) {
    random = random * 1664525U + 1013904223U;
    return (random >> 8) % n;
  };
  constexpr std::size_t kItems = 2000;
  std::vector<std::atomic<bool>> done(kItems);
  std::atomic<int> violations{0};
  std::vector<std::vector<std::size_t>> must_follow(4);
  struct Recorded {
    std::unique_ptr<Event> event;
    std::vector<std::size_t> items;
  };
  std::vector<Recorded> events;
  for (int i = 0; i < 8; ++i) events.push_back({device->make_event(), {}});
  for (std::size_t i = 0; i < kItems; ++i) {
    const std::uint32_t s = next(4);
    if (next(3) == 0) {
      Recorded& recorded = events[next(8)];
      streams[s]->wait(*recorded.event);
      must_follow[s].insert(must_follow[s].end(), recorded.items.begin(), recorded.items.end());
    }
    // Only the last few matter: what they follow was checked by themselves.
    if (must_follow[s].size() > 8) must_follow[s].erase(must_follow[s].begin(), must_follow[s].end() - 8);
    streams[s]->run([&done, &violations, i, follow = must_follow[s]](const kernels::Exec&) {
      for (const std::size_t j : follow) violations += done[j] ? 0 : 1;
      done[i] = true;
    });
    must_follow[s].push_back(i);
    if (next(3) == 0) {
      Recorded& recorded = events[next(8)];
      streams[s]->record(*recorded.event);
      recorded.items = {i};
    }
  }
  device->synchronize();
  EXPECT_EQ(violations, 0);
}

}  // namespace
}  // namespace shardscope::device
