// CUPTI's records of a GPU, against what is known otherwise: how many kernels were launched, how long CUDA's
// own events say they took, in which order, for whom.
#include "tests/gpu/activity.h"

#include <cuda_runtime_api.h>

#include "instrumentation/clock.h"
#include "runtime/profile/cuda/cupti_api.h"

namespace shardscope::gpu {
namespace {

TEST_F(GpuActivity, KernelsAreAllThereInOrderWithTheirTimesAndDelays) {
  constexpr std::int64_t kElems = 64 << 20;
  launch(1, kElems);
  device->synchronize();
  set_detail(instrumentation::Detail::kernels);
  ASSERT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
  launch(1, kElems);
  finish();
  const std::size_t each = of(events(), EventKind::gpu_begin, StreamId::gpu_compute).size();
  ASSERT_GT(each, 0U);
  const cudaStream_t stream = static_cast<device::cuda::CudaStream&>(device->compute()).handle();
  cudaEvent_t before = nullptr;
  cudaEvent_t after = nullptr;
  ASSERT_EQ(cudaEventCreate(&before), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&after), cudaSuccess);
  constexpr int kLaunches = 50;
  const std::int64_t host_before = instrumentation::monotonic_now_ns();
  cudaEventRecord(before, stream);
  launch(kLaunches, kElems);
  cudaEventRecord(after, stream);
  finish();
  const std::int64_t host_after = instrumentation::monotonic_now_ns();
  const auto all = events();
  const auto begins = of(all, EventKind::gpu_begin, StreamId::gpu_compute);
  const auto ends = of(all, EventKind::gpu_end, StreamId::gpu_compute);
  ASSERT_EQ(begins.size(), kLaunches * each);
  ASSERT_EQ(ends.size(), begins.size());
  float elapsed_ms = 0;
  ASSERT_EQ(cudaEventElapsedTime(&elapsed_ms, before, after), cudaSuccess);
  std::int64_t busy_ns = 0;
  std::string without_launch;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto begin = static_cast<std::int64_t>(begins[i].ticks);
    const auto end = static_cast<std::int64_t>(ends[i].ticks);
    EXPECT_GT(end, begin);
    // Half the clocks' bracket, which is microseconds.
    EXPECT_GT(begin, host_before - 20'000);
    EXPECT_LT(end, host_after + 20'000);
    if (i > 0) {
      EXPECT_GE(begin, static_cast<std::int64_t>(ends[i - 1].ticks));
    }
    EXPECT_EQ(instrumentation::work_of(begins[i].code), GpuWork::kernel);
    if (begins[i].v0 == instrumentation::kNoDelay) {
      without_launch += ' ' + std::to_string(i);
    } else {
      EXPECT_GT(begins[i].v0, -50'000);
    }
    busy_ns += end - begin;
  }
  EXPECT_EQ(without_launch, "") << "of " << begins.size() << " kernels";
  // Back to back on one stream: the kernels are most of what the events enclose, beside what CUPTI puts
  // between.
  EXPECT_LE(static_cast<double>(busy_ns), elapsed_ms * 1e6 * 1.02);
  EXPECT_GE(static_cast<double>(busy_ns), elapsed_ms * 1e6 * 0.60);
  const auto known = of(all, EventKind::gpu_records_end, StreamId::gpu_records);
  ASSERT_FALSE(known.empty());
  for (const Event& stretch : known) EXPECT_EQ(stretch.v1, 0) << "records were dropped";
  cudaEventDestroy(before);
  cudaEventDestroy(after);
}

TEST_F(GpuActivity, WorkKnowsForWhomItWasAndCopiesTheirBytes) {
  set_detail(instrumentation::Detail::kernels);
  ASSERT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
  launch(1, 1 << 20);
  finish();
  (void)events();
  device->compute().emit({.kind = EventKind::module_begin, .stream = StreamId::compute, .code = 1, .a = 42});
  launch(1, 1 << 20);
  device->compute().emit({.kind = EventKind::module_end, .stream = StreamId::compute, .code = 1, .a = 42});
  launch(1, 1 << 20);
  std::vector<float> host(1 << 20);
  device->copy_async(host.data(), input->data(), host.size() * sizeof(float), device->copy());
  finish();
  const auto all = events();
  const auto begins = of(all, EventKind::gpu_begin, StreamId::gpu_compute);
  ASSERT_GE(begins.size(), 2U);
  EXPECT_EQ(instrumentation::owner_of(begins.front().code), GpuOwner::backward) << "of " << begins.size();
  EXPECT_EQ(begins.front().b, 42U);
  EXPECT_NE(begins.front().v0, instrumentation::kNoDelay);
  EXPECT_EQ(instrumentation::owner_of(begins.back().code), GpuOwner::none);
  EXPECT_NE(begins.back().v0, instrumentation::kNoDelay);
  const auto copies = of(all, EventKind::gpu_begin, StreamId::gpu_copy);
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(instrumentation::work_of(copies[0].code), GpuWork::device_to_host);
  EXPECT_EQ(copies[0].v1, static_cast<std::int64_t>(host.size() * sizeof(float)));
}

/// While kernels run, so that buffers are in use when the records are requested.
TEST_F(GpuActivity, NoWorkComesFromBeforeWhatWasClaimedToBeKnown) {
  set_detail(instrumentation::Detail::kernels);
  ASSERT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
  std::vector<Event> all;
  const auto drain = [&] {
    const auto some = events();
    all.insert(all.end(), some.begin(), some.end());
  };
  for (int round = 0; round < 20; ++round) {
    launch(400, 1 << 20);
    recorder->flush();
    drain();
  }
  finish();
  drain();
  std::int64_t known_ns = INT64_MIN;
  for (const Event& event : all) {
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    if (event.kind == EventKind::gpu_records_end) known_ns = at_ns;
    if (event.kind == EventKind::gpu_begin) {
      if (known_ns != INT64_MIN) {
        ASSERT_GE(at_ns, known_ns - 50'000);  // the error of the clocks
      }
    }
  }
  EXPECT_NE(known_ns, INT64_MIN);
}

TEST_F(GpuActivity, IsSwitchedOnAndOffByTheLevel) {
  for (int round = 0; round < 3; ++round) {
    set_detail(instrumentation::Detail::kernels);
    ASSERT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
    launch(5, 1 << 20);
    finish();
    EXPECT_FALSE(of(events(), EventKind::gpu_begin, StreamId::gpu_compute).empty()) << round;
    set_detail(instrumentation::Detail::params);
    EXPECT_EQ(recorder->state(), GpuRecorder::State::off);
    (void)events();
    launch(5, 1 << 20);
    finish();
    EXPECT_TRUE(of(events(), EventKind::gpu_begin, StreamId::gpu_compute).empty()) << round;
  }
}

TEST_F(GpuActivity, AnotherSubscriberIsSaidPlainlyAndWorkGoesOn) {
  const auto& found = profile::cuda::CuptiApi::find();
  ASSERT_NE(found.api, nullptr) << found.reason;
  CUpti_SubscriberHandle other = nullptr;
  const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  ASSERT_EQ(found.api->Subscribe(&other, static_cast<CUpti_CallbackFunc>(nothing), nullptr), CUPTI_SUCCESS);
  set_detail(instrumentation::Detail::kernels);
  EXPECT_EQ(recorder->state(), GpuRecorder::State::refused);
  EXPECT_THAT(recorder->reason(), ::testing::HasSubstr("another profiler"));
  launch(5, 1 << 20);
  device->synchronize();
  ASSERT_EQ(found.api->Unsubscribe(other), CUPTI_SUCCESS);
  // Asked for again it is tried again.
  set_detail(instrumentation::Detail::params);
  set_detail(instrumentation::Detail::kernels);
  EXPECT_EQ(recorder->state(), GpuRecorder::State::recording) << recorder->reason();
}

TEST_F(GpuActivity, ASecondRecorderOfTheProcessIsRefused) {
  const auto second = make();
  instrumentation::g_detail = static_cast<int>(instrumentation::Detail::kernels);
  second->flush();
  EXPECT_EQ(second->state(), GpuRecorder::State::refused);
  EXPECT_THAT(second->reason(), ::testing::HasSubstr("another device"));
}

}  // namespace
}  // namespace shardscope::gpu
