// Records of the GPU of a run that is not ours (runtime/profile/attached/gpu.h), over the CUPTI of host
// threads: a program that uses the C interface and libshardscope_gpu.so, and what a viewer then has.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "app/store/store.h"
#include "runtime/profile/attached/gpu.h"
#include "tests/gpu/host_cuda/cupti.h"
#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope {
namespace {

using namespace std::chrono_literals;
using collector::Viewer;
using instrumentation::GpuOwner;
using instrumentation::StreamId;

// Before anybody looks for CUPTI.
[[maybe_unused]] const int g_library = setenv("SHARDSCOPE_CUPTI", SHARDSCOPE_HOST_CUPTI, 1);

class AttachedGpu : public testing::Test {
 protected:
  void SetUp() override {
    collector::CollectorOptions options;
    options.listen = "tcp://127.0.0.1:0";
    collector_.emplace(options);
    ASSERT_EQ(cudaStreamCreateWithPriority(&compute_, 0, 0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithPriority(&nccl_, 0, 0), cudaSuccess);
    shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
    info.run_id = "attached";
    ASSERT_EQ(shardscope_run_create(&info, &run_), SHARDSCOPE_OK);
    shardscope_options start = SHARDSCOPE_OPTIONS_INIT;
    const std::string endpoint = collector_->publish_endpoint();
    start.endpoint = endpoint.c_str();
    start.detail = SHARDSCOPE_DETAIL_KERNELS;
    ASSERT_EQ(shardscope_start(run_, &start), SHARDSCOPE_OK) << shardscope_last_error();
    viewer_.emplace(collector_->view_endpoint());
    shardscope_gpu_record(run_, compute_);
    shardscope_gpu_resume();  // returns when the recorder has looked at the level
  }
  void TearDown() override {
    shardscope_gpu_stop();
    shardscope_run_destroy(run_);
    cudaStreamDestroy(compute_);
    cudaStreamDestroy(nccl_);
  }
  void launch(int count, cudaStream_t stream, const char* name) {
    for (int i = 0; i < count; ++i) host_cuda::launch(stream, name, [] {});
    cudaStreamSynchronize(stream);
  }
  void end() {
    shardscope_gpu_stop();
    ASSERT_EQ(shardscope_finish(run_, 0, "done"), SHARDSCOPE_OK);
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    // A rank's end may come before its last events: the link has ended when all of them are in the store.
    while (viewer_->link() != Viewer::Link::ended) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      (void)viewer_->poll(store_, 5ms);
    }
  }
  std::vector<store::Span> spans(StreamId lane) { return store_.spans({0, lane}, 0); }

  std::optional<collector::Collector> collector_;
  std::optional<collector::Viewer> viewer_;
  store::Store store_;
  cudaStream_t compute_ = nullptr, nccl_ = nullptr;
  shardscope_run* run_ = nullptr;
};

TEST_F(AttachedGpu, KernelsHaveTheirLaneNameAndTheModuleThatQueuedThem) {
  shardscope_module_begin(SHARDSCOPE_PASS_BACKWARD, 42, 0);
  launch(10, compute_, "gemm");
  shardscope_module_end(SHARDSCOPE_PASS_BACKWARD, 42, 0);
  launch(3, compute_, "after");
  launch(2, nccl_, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL");
  end();
  const auto compute = spans(StreamId::gpu_compute);
  ASSERT_EQ(compute.size(), 13U);
  for (std::size_t i = 0; i < compute.size(); ++i) {
    EXPECT_EQ(instrumentation::owner_of(compute[i].code), i < 10 ? GpuOwner::backward : GpuOwner::none) << i;
    EXPECT_NE(compute[i].v0, instrumentation::kNoDelay) << i;
  }
  EXPECT_EQ(store_.name(0, compute.front().a), "gemm");
  EXPECT_EQ(compute.front().b, 42U);
  EXPECT_EQ(spans(StreamId::gpu_reduce).size(), 2U);
  EXPECT_FALSE(spans(StreamId::gpu_records).empty());
}

TEST_F(AttachedGpu, AnotherProfilerIsLeftCuptiAndTheStretchIsNotClaimedToBeKnown) {
  launch(4, compute_, "ours");
  shardscope_gpu_suspend();
  launch(5, compute_, "theirs");
  shardscope_gpu_resume();
  launch(6, compute_, "ours");
  end();
  EXPECT_EQ(spans(StreamId::gpu_compute).size(), 10U);
  const auto known = spans(StreamId::gpu_records);
  ASSERT_GE(known.size(), 2U);
  bool hole = false;
  for (std::size_t i = 1; i < known.size(); ++i) hole = hole || known[i].begin_ns > known[i - 1].end_ns;
  EXPECT_TRUE(hole);
}

TEST_F(AttachedGpu, BelowTheLevelNothingIsRecordedAndAgainNothingIsDone) {
  shardscope_gpu_record(run_, compute_);  // a second time
  launch(2, compute_, "gemm");
  end();
  EXPECT_EQ(spans(StreamId::gpu_compute).size(), 2U);
  shardscope_gpu_stop();  // twice
  shardscope_gpu_suspend();
}

}  // namespace
}  // namespace shardscope
