// The plugin in a program that has an event path of its own, as zero_train: what NCCL reports of a collective
// arrives with the number the program gave it, whatever order, thread or nonsense it comes in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "instrumentation/event.h"
#include "instrumentation/nccl_host.h"
#include "tests/instrumentation/nccl_profiler/fake_nccl.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::nccl_profiler {
namespace {

namespace ev = instrumentation;
using ev::EventKind;

std::atomic<int> g_wanted{static_cast<int>(ev::Detail::kernels)};
thread_local std::uint32_t t_current = ev::kNoId;

struct Arrived {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<ev::Event> events;

  void add(std::int64_t ns, const ev::Event& event) {
    const std::lock_guard lock(mutex);
    events.push_back(event);
    events.back().ticks = static_cast<std::uint64_t>(ns);
    more.notify_all();
  }
  std::vector<ev::Event> of(EventKind kind) {
    const std::lock_guard lock(mutex);
    std::vector<ev::Event> out;
    std::copy_if(events.begin(), events.end(), std::back_inserter(out),
                 [&](const ev::Event& e) { return e.kind == kind; });
    return out;
  }
  bool wait(EventKind kind, std::size_t count) {
    std::unique_lock lock(mutex);
    return more.wait_for(lock, std::chrono::seconds(60), [&] {
      return static_cast<std::size_t>(std::count_if(
                 events.begin(), events.end(), [&](const ev::Event& e) { return e.kind == kind; })) >= count;
    });
  }
} g_arrived;

const ev::NcclHost kTestHost{
    sizeof(ev::NcclHost), [](ev::Detail detail) { return static_cast<int>(detail) <= g_wanted.load(); },
    [](std::int64_t ns, const ev::Event& event) { g_arrived.add(ns, event); }, []() { return t_current; }};

class Plugin : public testing::TestWithParam<FakeComm::Version> {
 protected:
  void SetUp() override {
    g_wanted = static_cast<int>(ev::Detail::kernels);
    const std::lock_guard lock(g_arrived.mutex);
    g_arrived.events.clear();
  }
  static std::uint64_t mask() { return static_cast<unsigned>(__atomic_load_n(&g_mask, __ATOMIC_RELAXED)); }
  /// Until the plugin's thread has set NCCL's mask so.
  static bool wait_for_mask(std::uint64_t bit, bool set) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (((mask() & bit) != 0) != set) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  /// Kernels are requested once the plugin has found the program's events, which it does with the first
  /// collective.
  static bool ask_for_kernels(FakeComm& comm) {
    comm.collective({}, nullptr);
    return wait_for_mask(abi::kKernelChannel, true);
  }
  static std::vector<ev::Event> numbered(EventKind kind, std::uint32_t sequence) {
    std::vector<ev::Event> out = g_arrived.of(kind);
    std::erase_if(out, [&](const ev::Event& e) { return e.a != sequence; });
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Versions, Plugin, testing::Values(FakeComm::Version::v4, FakeComm::Version::v5),
                         [](const auto& version) {
                           return version.param == FakeComm::Version::v4 ? "v4" : "v5";
                         });

TEST_P(Plugin, CollectiveHasTheProgramsNumberAndNcclsWords) {
  FakeComm comm(GetParam(), 0xAB00000012ULL, 8, 3, "gather");
  ASSERT_NE(comm.context(), nullptr);
  t_current = 77;
  void* call = comm.call({});
  comm.collective(
      {.function = "ReduceScatter", .count = 1000, .datatype = "ncclBfloat16", .channels = 16, .sequence = 5},
      call);
  t_current = ev::kNoId;
  comm.finalize();
  const auto events = numbered(EventKind::nccl_collective, 77);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].code, static_cast<std::uint8_t>(ev::CollectiveOp::reduce_scatter));
  EXPECT_EQ(events[0].c, ev::nccl_code(ev::NcclAlgorithm::ring, ev::NcclProtocol::ll128, 16, 16));
  EXPECT_EQ(events[0].b, 0x12U ^ 0xABU);
  EXPECT_EQ(events[0].v0, 8 * 1000 * 2);
  EXPECT_EQ(events[0].v1, 5);
  EXPECT_TRUE(g_arrived.of(EventKind::nccl_kernel).empty());
}

TEST(PluginV5, TheCallNamesTheCollectiveWhereverItIsEnqueued) {
  FakeComm comm(FakeComm::Version::v5, 1, 2, 0);
  t_current = 31;
  void* call = comm.call({});
  t_current = ev::kNoId;
  // A communicator that does not block enqueues on a thread of NCCL's; a graph does it again and again, long
  // after.
  std::thread([&] {
    for (int replay = 0; replay < 3; ++replay) comm.collective({}, call);
  }).join();
  comm.finalize();
  const auto all = g_arrived.of(EventKind::nccl_collective);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const ev::Event& e) { return e.a == 31; }), 3);
}

TEST_P(Plugin, KernelTimesAreThoseOfTheChannels) {
  FakeComm comm(GetParam(), 2, 4, 0);
  ASSERT_TRUE(ask_for_kernels(comm));
  t_current = 9;
  void* handle = comm.collective({.channels = 3}, comm.call({}));
  t_current = ev::kNoId;
  // Reported by the proxy thread after the collective has been stopped, in no order.
  std::thread([&] {
    const std::uint64_t gpu = gpu_now() - 10'000'000;
    void* second = comm.channel(handle, 1, gpu + 200);
    void* first = comm.channel(handle, 0, gpu);
    comm.end_channel(second, gpu + 5000);
    void* third = comm.channel(handle, 2, gpu + 100);
    comm.end_channel(third, gpu + 9000);
    comm.end_channel(first, gpu + 7000);
  }).join();
  ASSERT_TRUE(g_arrived.wait(EventKind::nccl_kernel, 1));
  const auto events = numbered(EventKind::nccl_kernel, 9);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].c, shardscope::test::nccl_channels(3, 3));
  EXPECT_EQ(events[0].v0, 9000);
  EXPECT_EQ(events[0].v1, 4000);  // the first channel to end did so at 5000
}

TEST_P(Plugin, WhatNeverEndsIsReportedWithoutTimes) {
  FakeComm comm(GetParam(), 3, 4, 0);
  ASSERT_TRUE(ask_for_kernels(comm));
  t_current = 21;
  void* handle = comm.collective({.channels = 4}, comm.call({}));
  t_current = ev::kNoId;
  void* channel = comm.channel(handle, 0, 1000);
  comm.end_channel(channel, 3000);
  comm.channel(handle, 1, 1500);
  comm.finalize();
  EXPECT_EQ(numbered(EventKind::nccl_collective, 21).size(), 1U);
  const auto kernel = numbered(EventKind::nccl_kernel, 21);
  ASSERT_EQ(kernel.size(), 1U);
  EXPECT_EQ(kernel[0].c, shardscope::test::nccl_channels(1, 4))
      << "one of four channels was timed, and that is reported";
}

TEST_P(Plugin, NetworkOperationsAreCountedUnlessTheyServeAnotherProcess) {
  FakeComm comm(GetParam(), 4, 4, 0);
  ASSERT_TRUE(ask_for_kernels(comm));
  t_current = 5;
  void* handle = comm.collective({.channels = 1}, comm.call({}), true);
  t_current = ev::kNoId;
  void* send = comm.proxy(handle);
  void* receive = comm.proxy(handle);
  EXPECT_EQ(comm.proxy(handle, getpid() + 1), nullptr);
  comm.end_channel(comm.channel(handle, 0, 100), 200);
  comm.stop(handle);
  comm.stop(send);
  comm.stop(receive);
  comm.finalize();
  const auto proxies = numbered(EventKind::nccl_proxy, 5);
  ASSERT_EQ(proxies.size(), 1U);
  EXPECT_EQ(proxies[0].c, 2U);
  EXPECT_GE(proxies[0].v0, 0);
}

TEST_P(Plugin, NonsenseIsIgnored) {
  FakeComm comm(GetParam(), 5, 4, 0);
  ASSERT_TRUE(ask_for_kernels(comm));
  void* const wrong[] = {nullptr,
                         reinterpret_cast<void*>(1),
                         &comm,
                         reinterpret_cast<void*>(~std::uint64_t{0}),
                         reinterpret_cast<void*>(0x2000000000000FFFULL),
                         reinterpret_cast<void*>(0x20000000FFFFFFFFULL),
                         comm.context()};
  for (void* handle : wrong) {
    comm.stop(handle);
    comm.state(handle, abi::kKernelChannelStop, nullptr);
    abi::StateArguments arguments{};
    comm.state(handle, abi::kKernelChannelStop, &arguments);
    comm.state(handle, 4711, &arguments);
    EXPECT_EQ(comm.channel(handle, 0, 5), nullptr);
    EXPECT_EQ(comm.proxy(handle), nullptr);
    for (std::uint64_t type : {0ULL, 1ULL, 4ULL, 16ULL, 128ULL, 0x80ULL, 0xFFULL})
      EXPECT_EQ(comm.event(type, handle), nullptr) << type;
  }
  Played strange;
  strange.function = "Gather";
  EXPECT_EQ(comm.collective(strange, nullptr), nullptr);
  strange.function = nullptr;
  EXPECT_EQ(comm.collective(strange, nullptr), nullptr);
  t_current = 6;
  strange = {.datatype = nullptr, .algorithm = "SOMETHING_NEW", .protocol = nullptr, .channels = 0};
  comm.collective(strange, comm.call(strange));
  t_current = ev::kNoId;

  void* handle = nullptr;
  EXPECT_EQ(plugin_v5().start_event(nullptr, &handle, nullptr), abi::kSuccess);
  EXPECT_EQ(plugin_v5().start_event(comm.context(), nullptr, nullptr), abi::kSuccess);
  EXPECT_EQ(plugin_v4().start_event(&handle, &handle, nullptr), abi::kSuccess);
  EXPECT_EQ(plugin_v5().finalize(nullptr), abi::kSuccess);
  EXPECT_EQ(plugin_v5().finalize(reinterpret_cast<void*>(0x5000000000000FFFULL)), abi::kSuccess);
  EXPECT_EQ(plugin_v5().init(nullptr, 0, nullptr, nullptr, 0, 0, 0, nullptr), abi::kSuccess);
  comm.finalize();
  const auto unknown = numbered(EventKind::nccl_collective, 6);
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].c & 0xFFFFU, 0U);
  EXPECT_EQ(unknown[0].v0, 0);
}

TEST_P(Plugin, ReportsAfterTheEndChangeNothing) {
  void* handle = nullptr;
  void* channel = nullptr;
  void* context = nullptr;
  {
    FakeComm comm(GetParam(), 6, 4, 0);
    ASSERT_TRUE(ask_for_kernels(comm));
    handle = comm.collective({.channels = 2}, nullptr);
    channel = comm.channel(handle, 0, 10);
    context = comm.context();
  }
  FakeComm comm(GetParam(), 7, 4, 0);
  abi::DescriptionV5 late{};
  late.type = abi::kCollective;
  void* none = &late;
  EXPECT_EQ(plugin_v5().start_event(context, &none, &late), abi::kSuccess);
  EXPECT_EQ(none, nullptr);
  const std::size_t before = g_arrived.of(EventKind::nccl_kernel).size();
  // Every place is used again, so that a report that is too late would meet another operation.
  for (std::uint32_t i = 0; i < 5000; ++i) {
    t_current = 1000 + i;
    void* one = comm.collective({.channels = 1}, comm.call({}), true);
    comm.end_channel(channel, 999'999);
    EXPECT_EQ(comm.channel(handle, 1, 1), nullptr);
    if (one != nullptr) comm.end_channel(comm.channel(one, 0, 50), 60);
    comm.stop(one);
  }
  t_current = ev::kNoId;
  comm.finalize();
  const auto kernels = g_arrived.of(EventKind::nccl_kernel);
  ASSERT_GT(kernels.size(), before);
  for (std::size_t i = before; i < kernels.size(); ++i) EXPECT_EQ(kernels[i].v0, 10);
}

TEST_P(Plugin, ManyThreadsAtOnce) {
  constexpr std::uint32_t kThreads = 4, kEach = 3000;
  FakeComm comm(GetParam(), 8, 2, 0);
  ASSERT_TRUE(ask_for_kernels(comm));
  std::atomic<std::uint32_t> refused{0};
  struct Queue {
    std::mutex mutex;
    std::vector<std::pair<void*, std::uint32_t>> handles;
    bool done = false;
  } queue;
  // The proxy thread: times whatever has been enqueued, newest first.
  std::thread proxy([&] {
    for (;;) {
      std::vector<std::pair<void*, std::uint32_t>> now;
      bool done = false;
      {
        const std::lock_guard lock(queue.mutex);
        now.swap(queue.handles);
        done = queue.done;
      }
      if (now.empty() && done) return;
      if (now.empty()) std::this_thread::yield();
      for (auto it = now.rbegin(); it != now.rend(); ++it) {
        void* one = comm.channel(it->first, 0, 1000);
        void* two = comm.channel(it->first, 1, 1000);
        comm.end_channel(two, 1000 + it->second);
        comm.end_channel(one, 1000 + it->second);
      }
    }
  });
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        t_current = t * kEach + i;
        void* handle = comm.collective({.channels = 2}, comm.call({}));
        if (handle == nullptr) {
          ++refused;
          continue;
        }
        const std::lock_guard lock(queue.mutex);
        queue.handles.emplace_back(handle, t_current);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  {
    const std::lock_guard lock(queue.mutex);
    queue.done = true;
  }
  proxy.join();
  comm.finalize();
  const auto collectives = g_arrived.of(EventKind::nccl_collective);
  const auto kernels = g_arrived.of(EventKind::nccl_kernel);
  EXPECT_EQ(collectives.size() + refused, kThreads * kEach + 1);
  EXPECT_EQ(kernels.size() + refused, kThreads * kEach);
  for (const ev::Event& kernel : kernels) ASSERT_EQ(kernel.v0, kernel.a);
}

TEST_P(Plugin, MoreThanThereArePlacesForIsRefused) {
  FakeComm comm(GetParam(), 9, 2, 0);
  std::size_t taken = 0;
  for (int i = 0; i < 10'000; ++i) taken += comm.collective({}, nullptr, true) != nullptr ? 1 : 0;
  comm.finalize();
  EXPECT_EQ(taken, 4096U);
  EXPECT_EQ(g_arrived.of(EventKind::nccl_collective).size(), taken);
}

TEST_P(Plugin, MaskFollowsTheDetailLevelOfTheRun) {
  g_wanted = static_cast<int>(ev::Detail::params);
  FakeComm comm(GetParam(), 10, 2, 0);
  EXPECT_NE(mask() & abi::kCollective, 0U);
  EXPECT_EQ(mask() & abi::kKernelChannel, 0U) << "only what costs the GPU nothing";
  g_wanted = static_cast<int>(ev::Detail::kernels);
  ASSERT_TRUE(ask_for_kernels(comm));
  g_wanted = static_cast<int>(ev::Detail::params);
  EXPECT_TRUE(wait_for_mask(abi::kKernelChannel, false));
  EXPECT_NE(mask() & abi::kCollective, 0U);
  g_wanted = static_cast<int>(ev::Detail::steps);
  EXPECT_TRUE(wait_for_mask(abi::kCollective, false));
  g_wanted = static_cast<int>(ev::Detail::kernels);
  EXPECT_TRUE(wait_for_mask(abi::kKernelChannel, true));
}

TEST(NcclAbi, LayoutIsNccls) {
  // x86-64 and aarch64 alike; compared with NCCL's own headers of v2.28.9 when it was written.
  EXPECT_EQ(sizeof(abi::ProfilerV5), 48U);
  EXPECT_EQ(sizeof(abi::ProfilerV4), 48U);
  EXPECT_EQ(sizeof(abi::DescriptionV5), 112U);
  EXPECT_EQ(sizeof(abi::DescriptionV4), 104U);
  EXPECT_EQ(sizeof(abi::StateArguments), 8U);
  EXPECT_EQ(offsetof(abi::DescriptionV5, parent), 8U);
  EXPECT_EQ(offsetof(abi::DescriptionV5, collective), 24U);
  EXPECT_EQ(offsetof(abi::DescriptionV4, parent), 8U);
  EXPECT_EQ(offsetof(abi::DescriptionV4, collective), 24U);
}

}  // namespace
}  // namespace shardscope::nccl_profiler

extern "C" __attribute__((visibility("default"))) const shardscope::instrumentation::NcclHost*
shardscope_nccl_host() {
  return &shardscope::nccl_profiler::kTestHost;
}
