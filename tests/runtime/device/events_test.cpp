// Events of streams, the arena and collectives: in which order and with which figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "tests/instrumentation/packed_codes.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::testing {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::MemoryCategory;
using instrumentation::StreamId;

class EventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = instrumentation::g_detail.exchange(static_cast<int>(instrumentation::Detail::params));
    static_cast<void>(drain());
  }
  void TearDown() override { instrumentation::g_detail.store(before_); }
  static std::vector<Event> drain() {
    std::vector<Event> events;
    instrumentation::RingRegistry::instance().drain(events);
    return events;
  }
  static std::vector<Event> of_kind(const std::vector<Event>& events, EventKind kind) {
    std::vector<Event> some;
    for (const Event& event : events) {
      if (event.kind == kind) some.push_back(event);
    }
    return some;
  }

 private:
  int before_ = 0;
};

TEST_F(EventsTest, ACollectiveTellsItsWholeLife) {
  const auto outcomes = run_ranks(1, {}, [](comm::World& world, device::Device& device) {
    const auto gather = world.make_communicator("gather");
    const auto reduce = world.make_communicator("reduce");
    const device::Buffer a = device.memory().allocate(400, {}, device.gather());
    const device::Buffer b = device.memory().allocate(800, {}, device.gather());
    const std::vector<comm::GatherPart> parts{{a.data(), a.data(), 100, 5}, {b.data(), b.data(), 200, 6}};
    gather->all_gather(parts, kernels::DType::f32, device.gather(), {42});
    const device::Buffer c = device.memory().allocate(40, {}, device.reduce());
    reduce->all_reduce(std::array{comm::AllReducePart{c.data(), 10}}, kernels::DType::f32, 1, device.reduce(),
                       {});
    device.synchronize();
  });
  ASSERT_EQ(outcomes[0].error, "");
  const auto events = drain();
  const auto submitted = of_kind(events, EventKind::collective_submitted);
  ASSERT_EQ(submitted.size(), 2U);
  EXPECT_EQ(submitted[0].a + 1, submitted[1].a)
      << "numbered in the order of submission, across communicators";
  EXPECT_EQ(submitted[0].b, 42U);
  EXPECT_EQ(submitted[0].c, 2U);
  EXPECT_EQ(submitted[0].v0, 300);
  EXPECT_EQ(submitted[0].v1, 1200);
  EXPECT_EQ(submitted[0].stream, StreamId::host);
  const auto parts = of_kind(events, EventKind::collective_part);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].b, 5U);
  EXPECT_EQ(parts[1].b, 6U);
  EXPECT_EQ(parts[1].v1, 800);
  for (const EventKind kind :
       {EventKind::collective_begin, EventKind::collective_entered, EventKind::collective_end}) {
    const auto some = of_kind(events, kind);
    ASSERT_EQ(some.size(), 2U);
    for (const Event& event : some) {
      EXPECT_EQ(event.stream, event.a == submitted[0].a ? StreamId::gather : StreamId::reduce);
    }
  }
  std::uint64_t begin = 0;
  std::uint64_t entered = 0;
  std::uint64_t end = 0;
  for (const Event& event : events) {
    if (event.a != submitted[0].a || event.stream != StreamId::gather) continue;
    if (event.kind == EventKind::collective_begin) begin = event.ticks;
    if (event.kind == EventKind::collective_entered) entered = event.ticks;
    if (event.kind == EventKind::collective_end) end = event.ticks;
  }
  EXPECT_LE(submitted[0].ticks, begin);
  EXPECT_LE(begin, entered);
  EXPECT_LE(entered, end);
}

TEST_F(EventsTest, MemoryEventsAddUpToThePool) {
  const auto device = device::make_cpu_device(nullptr);
  device::Buffer a = device->memory().allocate(1000, {MemoryCategory::activation, 11}, device->compute());
  device::Buffer b = device->memory().allocate(300, {MemoryCategory::momentum, 12}, device->compute());
  device->memory().retag(a, {MemoryCategory::grad_full, 13});
  b.reset();
  const auto events = drain();
  std::int64_t pool = 0;
  std::size_t seen = 0;
  for (const Event& event : events) {
    if (event.kind != EventKind::memory_alloc && event.kind != EventKind::memory_free) continue;
    pool += event.kind == EventKind::memory_alloc ? event.v0 : -event.v0;
    EXPECT_EQ(event.v1, pool);
    ++seen;
  }
  EXPECT_EQ(seen, 5U);
  EXPECT_EQ(pool, static_cast<std::int64_t>(device->memory().used_bytes()));
  EXPECT_EQ(events.back().a, 12U);
  EXPECT_EQ(events.back().code,
            shardscope::test::memory_code(instrumentation::MemoryPool::device, MemoryCategory::momentum));
}

TEST_F(EventsTest, EventsOfAnIdleStreamWakeNobody) {
  const auto device = device::make_cpu_device(nullptr);
  std::uint32_t emitted = 0;
  const auto there_at_once = [&] {
    device->gather().emit({.kind = EventKind::param_status, .stream = StreamId::gather, .a = ++emitted});
    const std::vector<Event> events = drain();
    return !events.empty() && events.back().a == emitted;
  };
  // Its thread emits once, then goes to sleep at some time; from then on it is not needed. A thread that was
  // woken for each would hardly be faster than this one a hundred times in a row.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int in_a_row = 0;
  while (in_a_row < 100 && std::chrono::steady_clock::now() < deadline) {
    in_a_row = there_at_once() ? in_a_row + 1 : 0;
  }
  ASSERT_EQ(in_a_row, 100);
  const auto point = device->make_timed_event();
  device->gather().record(*point);
  EXPECT_TRUE(point->reached());
  std::int64_t reached_ns = 0;
  device->gather().emit_timed({.kind = EventKind::param_status, .a = 7},
                              std::array<device::Event*, 1>{point.get()},
                              [](Event& event, std::span<const std::int64_t> at) { event.v0 = at[0]; });
  const std::vector<Event> events = drain();
  ASSERT_EQ(events.size(), 1U);
  reached_ns = events[0].v0;
  EXPECT_GT(reached_ns, 0);
  EXPECT_LE(reached_ns, instrumentation::monotonic_now_ns());
}

TEST_F(EventsTest, EventsOfAStreamThatIsIdleNowAndThenKeepTheirOrder) {
  const auto device = device::make_cpu_device(nullptr);
  std::mt19937 random(1);
  std::uint32_t emitted = 0;
  std::vector<Event> events;
  for (int round = 0; round < 5000; ++round) {
    const auto what = random() % 4;
    if (what == 0) device->gather().run([](const kernels::Exec&) { std::this_thread::yield(); });
    if (what == 1 && random() % 16 == 0) device->gather().synchronize();
    if (what >= 2) {
      device->gather().emit({.kind = EventKind::param_status, .stream = StreamId::gather, .a = emitted++});
    }
  }
  device->synchronize();
  events = drain();
  ASSERT_EQ(events.size(), emitted);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].a, i);
    ASSERT_LE(events[i == 0 ? 0 : i - 1].ticks, events[i].ticks);
  }
}

TEST_F(EventsTest, StreamEventsAreStampedWhenTheStreamGetsThere) {
  const auto device = device::make_cpu_device(nullptr);
  Event event;
  event.kind = EventKind::module_begin;
  event.stream = StreamId::compute;
  event.a = 1;
  device->compute().emit(event);
  device->compute().run(
      [](const kernels::Exec&) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  event.kind = EventKind::module_end;
  device->compute().emit(event);
  device->compute().synchronize();
  instrumentation::g_detail.store(static_cast<int>(instrumentation::Detail::phases));
  device->compute().emit(event);  // above the level now
  device->compute().synchronize();
  const auto events = drain();
  const auto ends = of_kind(events, EventKind::module_end);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_GT(ends[0].ticks, of_kind(events, EventKind::module_begin).at(0).ticks);
}

TEST(EmulatedLinkTest, HoldsACollectiveForItsTimeOnTheLink) {
  comm::WorldOptions options;
  options.link = {0.008, 3000};  // 10^6 bytes per second, 3 ms
  const auto outcomes = run_ranks(2, options, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    const device::Buffer full = device.memory().allocate(20'000, {}, device.gather());
    const comm::GatherPart part{static_cast<std::byte*>(full.data()) + world.rank() * 10'000, full.data(),
                                2500, 0};
    const auto begin = std::chrono::steady_clock::now();
    communicator->all_gather({&part, 1}, kernels::DType::f32, device.gather(), {});
    device.gather().synchronize();
    // Bus traffic of one rank: 20000 bytes times 1/2 -> 10 ms, and the latency.
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(13));
  });
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.error, "");
}

}  // namespace
}  // namespace shardscope::testing
