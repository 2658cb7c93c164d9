// What a GPU would have to be brought to: work that holds CUPTI's buffers, buffers that run out, a clock that
// is set, refusals. Over the CUPTI of host threads, by which each can be had at will and counted.
#include "tests/gpu/host_cuda/cupti.h"

#include <cupti.h>
#include <dlfcn.h>

#include <latch>
#include <thread>

#include "instrumentation/clock.h"
#include "runtime/profile/cuda/cupti_api.h"
#include "runtime/profile/cuda/cupti_session.h"
#include "tests/gpu/activity.h"
#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope::gpu {
namespace {

// Before anybody looks for CUPTI.
[[maybe_unused]] const int g_library = setenv("SHARDSCOPE_CUPTI", SHARDSCOPE_HOST_CUPTI, 1);

class HostCuptiTest : public GpuActivity {
 protected:
  void SetUp() override {
    GpuActivity::SetUp();
    void* library = dlopen(SHARDSCOPE_HOST_CUPTI, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) {
      ASSERT_NE(profile::cuda::CuptiApi::find().api, nullptr) << profile::cuda::CuptiApi::find().reason;
      library = dlopen(SHARDSCOPE_HOST_CUPTI, RTLD_NOW | RTLD_NOLOAD);
    }
    ASSERT_NE(library, nullptr);
    cupti = reinterpret_cast<host_cuda::HostCupti* (*)()>(dlsym(library, "host_cupti"))();
  }
  void TearDown() override {
    cupti->clock_ns = 0;
    cupti->refused_kind = -1;
    cupti->no_times = false;
    cupti->late = false;
    cupti->realtime_work = 0;
    GpuActivity::TearDown();
  }
  void record() {
    set_detail(instrumentation::Detail::kernels);
    ASSERT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
    finish();
    (void)events();
  }
  [[nodiscard]] cudaStream_t compute() const {
    return static_cast<device::cuda::CudaStream&>(device->compute()).handle();
  }
  /// Work that runs until the latch is counted down.
  void hold(std::latch& latch) const {
    host_cuda::launch(compute(), "held", [&latch] { latch.wait(); });
  }
  void small(int count) const {
    for (int i = 0; i < count; ++i) host_cuda::launch(compute(), "small", [] {});
  }
  /// Of the claims of what is known: how far, how many records, how many dropped.
  struct Known {
    std::int64_t until_ns = INT64_MIN;
    std::int64_t records = 0, dropped = 0;
    std::int64_t not_placed = 0, no_launch = 0;
  };
  static Known known(const std::vector<Event>& all) {
    Known sum;
    for (const Event& event : of(all, EventKind::gpu_records_end, StreamId::gpu_records)) {
      sum.until_ns = static_cast<std::int64_t>(event.ticks);
      sum.records += event.v0;
      sum.dropped += event.v1;
      sum.not_placed += event.b;
      sum.no_launch += event.c;
    }
    return sum;
  }
  host_cuda::HostCupti* cupti = nullptr;
};

TEST_F(HostCuptiTest, WhatStillRunsIsNotClaimedToBeKnown) {
  record();
  std::latch go(1);
  const std::int64_t before_ns = instrumentation::monotonic_now_ns();
  hold(go);
  small(10);
  recorder->flush();
  recorder->flush();
  auto all = events();
  EXPECT_TRUE(of(all, EventKind::gpu_begin, StreamId::gpu_compute).empty());
  EXPECT_LE(known(all).until_ns, instrumentation::monotonic_now_ns());
  if (known(all).until_ns != INT64_MIN) {
    EXPECT_LE(known(all).until_ns, before_ns + 1'000'000);
  }
  go.count_down();
  finish();
  all = events();
  EXPECT_EQ(of(all, EventKind::gpu_begin, StreamId::gpu_compute).size(), 11U);
  EXPECT_EQ(known(all).dropped, 0);
  EXPECT_EQ(known(all).no_launch, 0);
}

/// A forced flush takes the record from the work that has not ended: its times are lost, and the loss is
/// reported.
TEST_F(HostCuptiTest, WorkThatRunsWhenRecordingEndsIsCountedAndNotInvented) {
  record();
  std::latch go(1);
  small(5);
  device->synchronize();
  hold(go);
  set_detail(instrumentation::Detail::params);
  EXPECT_EQ(recorder->state(), GpuRecorder::State::off);
  auto all = events();
  EXPECT_EQ(of(all, EventKind::gpu_begin, StreamId::gpu_compute).size(), 5U);
  EXPECT_EQ(known(all).dropped, 1);
  go.count_down();
  device->synchronize();
  record();
  small(3);
  finish();
  all = events();
  EXPECT_EQ(of(all, EventKind::gpu_begin, StreamId::gpu_compute).size(), 3U);
  EXPECT_EQ(known(all).dropped, 0);
}

TEST_F(HostCuptiTest, WithoutBuffersEveryRecordIsThereOrCounted) {
  // All of it is emitted at once: a ring of the recorder's thread that holds it.
  recorder.reset();
  instrumentation::RingRegistry::instance().set_capacity(1U << 20);
  recorder = make();
  record();
  instrumentation::RingRegistry::instance().set_capacity(1U << 16);
  std::latch go(1);
  hold(go);
  // A kernel's record and those of the two calls that launched it.
  constexpr std::size_t kBytes = sizeof(CUpti_ActivityKernel10) + 2 * sizeof(CUpti_ActivityAPI);
  constexpr int kMore = 20'000;
  constexpr int kLaunches =
      static_cast<int>(profile::cuda::kMostBuffers * profile::cuda::kBufferBytes / kBytes) + kMore;
  small(kLaunches);
  go.count_down();
  finish();
  const auto all = events();
  const Known traced = known(all);
  // And those of finish()'s wait for the streams, and of stamps that were requested meanwhile.
  EXPECT_GE(traced.records + traced.dropped, 3 * (kLaunches + 1));
  EXPECT_LE(traced.records + traced.dropped, 3 * (kLaunches + 1) + 1000);
  EXPECT_GT(traced.dropped, 0);
  EXPECT_LT(traced.dropped, 4 * kMore);
  // Buffers come back: what follows is complete again.
  small(100);
  finish();
  const auto later = events();
  EXPECT_EQ(of(later, EventKind::gpu_begin, StreamId::gpu_compute).size(), 100U);
  EXPECT_EQ(known(later).dropped, 0);
}

TEST_F(HostCuptiTest, WorkWithoutTimesIsCounted) {
  record();
  cupti->no_times = true;
  small(7);
  finish();
  cupti->no_times = false;
  small(2);
  finish();
  const auto all = events();
  EXPECT_EQ(of(all, EventKind::gpu_begin, StreamId::gpu_compute).size(), 2U);
  EXPECT_EQ(known(all).dropped, 7);
}

TEST_F(HostCuptiTest, ARefusalSaysWhatToDoAndLeavesThePlaceFree) {
  cupti->refused_kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  cupti->refusal = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  set_detail(instrumentation::Detail::kernels);
  EXPECT_EQ(recorder->state(), GpuRecorder::State::refused);
  EXPECT_THAT(recorder->reason(), ::testing::HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
  small(3);
  finish();
  EXPECT_TRUE(of(events(), EventKind::gpu_begin, StreamId::gpu_compute).empty());
  const auto& api = *profile::cuda::CuptiApi::find().api;
  CUpti_SubscriberHandle other = nullptr;
  EXPECT_EQ(api.Subscribe(&other, nullptr, nullptr), CUPTI_SUCCESS);
  EXPECT_EQ(api.Unsubscribe(other), CUPTI_SUCCESS);
}

/// While the recorder asks for records, as in a run; each thread has a stream.
TEST_F(HostCuptiTest, EachThreadsWorkHasItsOwners) {
  record();
  constexpr int kRounds = 300;
  const auto launches = [](device::Stream& stream, StreamId lane, EventKind begin, EventKind end,
                           std::uint32_t first) {
    for (int i = 0; i < kRounds; ++i) {
      const std::uint32_t id = first + static_cast<std::uint32_t>(i);
      stream.emit({.kind = begin, .stream = lane, .a = id});
      host_cuda::launch(static_cast<device::cuda::CudaStream&>(stream).handle(), "owned", [] {});
      stream.emit({.kind = end, .stream = lane, .a = id});
    }
  };
  std::thread gathers([&] {
    launches(device->gather(), StreamId::gather, EventKind::collective_begin, EventKind::collective_end,
             5000);
  });
  launches(device->compute(), StreamId::compute, EventKind::module_begin, EventKind::module_end, 100);
  gathers.join();
  finish();
  const auto all = events();
  const auto check = [&](StreamId lane, GpuOwner owner, std::uint32_t first) {
    const auto begins = of(all, EventKind::gpu_begin, lane);
    ASSERT_EQ(begins.size(), static_cast<std::size_t>(kRounds));
    for (int i = 0; i < kRounds; ++i) {
      const Event& begin = begins[static_cast<std::size_t>(i)];
      EXPECT_EQ(instrumentation::owner_of(begin.code), owner);
      ASSERT_EQ(begin.b, first + static_cast<std::uint32_t>(i));
    }
  };
  check(StreamId::gpu_compute, GpuOwner::forward, 100);
  check(StreamId::gpu_gather, GpuOwner::collective, 5000);
}

TEST_F(HostCuptiTest, WaitsAndMemoryOfTheDriverAreReported) {
  record();
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  void* data = nullptr;
  const std::int64_t before_ns = instrumentation::monotonic_now_ns();
  ASSERT_EQ(cudaMalloc(&data, kBytes), cudaSuccess);
  ASSERT_EQ(cudaFree(data), cudaSuccess);
  std::latch go(1);
  hold(go);
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go.count_down();
  });
  device->compute().synchronize();
  releases.join();
  finish();
  const auto all = events();
  const auto memory = of(all, EventKind::gpu_memory, StreamId::host);
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0].v0, static_cast<std::int64_t>(kBytes));
  EXPECT_EQ(memory[0].v1, memory[1].v1);
  EXPECT_NE(memory[0].code, memory[1].code);
  const auto begins = of(all, EventKind::gpu_sync_begin, StreamId::gpu_host);
  const auto ends = of(all, EventKind::gpu_sync_end, StreamId::gpu_host);
  ASSERT_FALSE(begins.empty());
  ASSERT_EQ(begins.size(), ends.size());
  EXPECT_GE(static_cast<std::int64_t>(begins[0].ticks), before_ns);
  EXPECT_GE(ends[0].ticks - begins[0].ticks, 15'000'000U);
}

/// The stamps' thread looks at events again and again: CUPTI would make a record of each look.
TEST_F(HostCuptiTest, LooksAtWhatIsNotReadyFillNoBuffers) {
  record();
  std::latch go(1);
  hold(go);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, compute()), cudaSuccess);
  const std::uint64_t before = cupti->waits;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_LT(cupti->waits - before, 500U);
  (void)cudaGetLastError();
  go.count_down();
  finish();
  cudaEventDestroy(event);
}

/// The realtime clock is set by an hour while work is recorded: no work may leave its place.
TEST_F(HostCuptiTest, AClockThatIsSetMovesNothing) {
  record();
  constexpr int kEach = 200;
  const std::int64_t first_ns = instrumentation::monotonic_now_ns();
  small(kEach);
  device->synchronize();
  const std::int64_t set_ns = instrumentation::monotonic_now_ns();
  cupti->clock_ns = 3'600'000'000'000;
  small(kEach);
  finish();
  const std::int64_t last_ns = instrumentation::monotonic_now_ns();
  const auto begins = of(events(), EventKind::gpu_begin, StreamId::gpu_compute);
  ASSERT_EQ(begins.size(), 2U * kEach);
  constexpr std::int64_t kError = 200'000;
  for (int i = 0; i < 2 * kEach; ++i) {
    const auto at_ns = static_cast<std::int64_t>(begins[static_cast<std::size_t>(i)].ticks);
    ASSERT_GT(at_ns, (i < kEach ? first_ns : set_ns) - kError) << i;
    ASSERT_LT(at_ns, (i < kEach ? set_ns : last_ns) + kError) << i;
  }
}

/// CUPTI is given the host's clock. Some libraries keep the realtime clock for work, all of it or the first.
TEST_F(HostCuptiTest, WorkByTheRealtimeClockIsDistinguishedFromWorkByOurs) {
  record();
  constexpr int kEach = 100;
  const std::int64_t first_ns = instrumentation::monotonic_now_ns();
  cupti->realtime_work = kEach;
  small(2 * kEach);
  finish();
  const std::int64_t last_ns = instrumentation::monotonic_now_ns();
  const auto all = events();
  const auto begins = of(all, EventKind::gpu_begin, StreamId::gpu_compute);
  ASSERT_EQ(begins.size(), 2U * kEach);
  EXPECT_EQ(known(all).dropped, 0);
  EXPECT_EQ(known(all).not_placed, 0);
  constexpr std::int64_t kError = 200'000;
  for (const Event& begin : begins) {
    ASSERT_GT(static_cast<std::int64_t>(begin.ticks), first_ns - kError);
    ASSERT_LT(static_cast<std::int64_t>(begin.ticks), last_ns + kError);
    ASSERT_GT(begin.v0, -kError) << "before its launch";
    ASSERT_LT(begin.v0, last_ns - first_ns + kError);
  }
}

/// The last flush of a period returns before the buffers are back: all records are reported, and the next
/// period has none of it.
TEST_F(HostCuptiTest, BuffersThatComeAfterTheFlushBelongToTheirPeriod) {
  for (int round = 0; round < 3; ++round) {
    record();
    cupti->late = true;
    constexpr int kLaunches = 50;
    small(kLaunches);
    device->synchronize();
    set_detail(instrumentation::Detail::params);
    EXPECT_EQ(of(events(), EventKind::gpu_begin, StreamId::gpu_compute).size(), kLaunches) << round;
    cupti->late = false;
  }
}

}  // namespace
}  // namespace shardscope::gpu
