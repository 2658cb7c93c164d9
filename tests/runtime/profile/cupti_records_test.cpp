// CUPTI's records, made up in memory, as ours.
#include "runtime/profile/cuda/cupti_records.h"

#include <cuda.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "runtime/profile/cuda/cupti_api.h"

namespace shardscope::profile::cuda {
namespace {

using instrumentation::GpuSync;
using instrumentation::GpuWork;

class CuptiRecords : public ::testing::Test {
 protected:
  CuptiRecords() { clock.add({1'000'000, 50, 50}, {1'000'000, 50, 50}); }  // host = CUPTI's - 999950

  template <typename Record>
  void take(const Record& record) {
    // Records lie in buffers aligned to 8 bytes.
    alignas(8) std::byte raw[sizeof(Record)];
    std::memcpy(raw, &record, sizeof record);
    take_record(*reinterpret_cast<const CUpti_Activity*>(raw), clock, names, batch);
  }

  std::map<std::string, std::uint32_t> given;
  RecordClock clock;
  Names names{[this](const std::string& name) {
    return given.try_emplace(name, static_cast<std::uint32_t>(given.size())).first->second;
  }};
  RecordBatch batch;
};

TEST_F(CuptiRecords, AKernelHasItsNameStreamTimesAndThreads) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = "_ZN10shardscope7kernels4cuda12_GLOBAL__N_110layer_normIfEEvPT_PKS4_l";
  record.start = 1'000'100;
  record.end = 1'000'400;
  record.streamId = 13;
  record.correlationId = 77;
  record.gridX = 100;
  record.gridY = 2;
  record.gridZ = 1;
  record.blockX = 128;
  record.blockY = record.blockZ = 1;
  take(record);
  ASSERT_EQ(batch.work.size(), 1U);
  const WorkRecord& work = batch.work[0];
  EXPECT_EQ(work.work, GpuWork::kernel);
  EXPECT_EQ(work.name, given.at("layer_norm<float>"));
  EXPECT_EQ(work.stream, 13U);
  EXPECT_EQ(work.correlation, 77U);
  EXPECT_EQ(work.begin_ns, 150);
  EXPECT_EQ(work.end_ns, 450);
  EXPECT_EQ(work.amount, 100 * 2 * 128);
  take(record);
  EXPECT_EQ(given.size(), 1U);
}

TEST_F(CuptiRecords, WhatHasNoTimesIsDroppedAndCounted) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = "k";
  record.start = 1'000'100;  // still running when the flush was forced
  take(record);
  EXPECT_TRUE(batch.work.empty());
  EXPECT_EQ(batch.dropped, 1U);
  // The begin by the host's clock, the end by the wall clock, which has been set back since.
  clock = RecordClock(true);
  clock.add({5'000, 5'000, 5'000}, {1'700'000'000'000'000'000, 5'000, 5'000});
  record.start = 4'000;
  record.end = 1'700'000'000'000'000'000 - 2'000;
  take(record);
  EXPECT_TRUE(batch.work.empty());
  EXPECT_EQ(batch.dropped, 2U);
}

TEST_F(CuptiRecords, CopiesAndMemsetsSayTheirDirectionAndBytes) {
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.start = 1'000'100;
  copy.end = 1'000'200;
  copy.bytes = 1 << 20;
  const std::map<std::uint8_t, GpuWork> directions{
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, GpuWork::host_to_device},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, GpuWork::device_to_host},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, GpuWork::device_to_device},
      {CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, GpuWork::peer_to_peer},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, GpuWork::other_copy}};
  for (const auto& [kind, work] : directions) {
    copy.copyKind = kind;
    take(copy);
    EXPECT_EQ(batch.work.back().work, work);
    EXPECT_EQ(batch.work.back().amount, 1 << 20);
  }
  CUpti_ActivityMemcpyPtoP4 peer{};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.start = peer.end = 1'000'100;
  peer.bytes = 12;
  take(peer);
  EXPECT_EQ(batch.work.back().work, GpuWork::peer_to_peer);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.start = set.end = 1'000'100;
  set.bytes = 99;
  take(set);
  EXPECT_EQ(batch.work.back().work, GpuWork::memset);
  EXPECT_EQ(batch.work.back().amount, 99);
  EXPECT_TRUE(given.contains("copy host to device"));
}

TEST_F(CuptiRecords, CallsThatFailedQueuedNothing) {
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  call.start = 1'000'100;
  call.end = 1'000'105;
  call.correlationId = 5;
  call.threadId = 6;
  take(call);
  ASSERT_EQ(batch.launches.size(), 1U);
  EXPECT_EQ(batch.launches[0].begin_ns, 150);
  EXPECT_EQ(batch.launches[0].end_ns, 155);
  EXPECT_EQ(batch.launches[0].thread, 6U);
  call.end = 0;  // CUPTI could not time it
  take(call);
  call.end = call.start;
  call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  call.cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  call.returnValue = 700;
  take(call);
  EXPECT_EQ(batch.launches.size(), 1U);
}

TEST_F(CuptiRecords, OnlyOurOwnExternalIdsAreOwners) {
  CUpti_ActivityExternalCorrelation external{};
  external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  external.externalId = 0x300000007ULL;
  external.correlationId = 5;
  take(external);
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
  take(external);
  ASSERT_EQ(batch.owners.size(), 1U);
  EXPECT_EQ(batch.owners[0].owner, 0x300000007ULL);
}

TEST_F(CuptiRecords, SynchronizationAndMemory) {
  CUpti_ActivitySynchronization2 sync{};
  sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  sync.start = 1'000'100;
  sync.end = 1'009'900;
  sync.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  take(sync);
  ASSERT_EQ(batch.syncs.size(), 1U);
  EXPECT_EQ(batch.syncs[0].sync, GpuSync::context);
  EXPECT_EQ(batch.syncs[0].stream, instrumentation::kNoId);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;  // holds no thread
  take(sync);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  sync.start = sync.end = 0;  // CUPTI could not time it
  take(sync);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  sync.start = 1'000'100;
  sync.end = sync.start + kShortestWaitNs - 1;  // an event was asked whether it has been reached: yes
  take(sync);
  sync.end = sync.start + kShortestWaitNs;
  sync.returnValue = CUDA_ERROR_NOT_READY;  // no
  take(sync);
  EXPECT_EQ(batch.syncs.size(), 1U);

  CUpti_ActivityMemory4 memory{};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  memory.bytes = 4096;
  memory.address = 0xABC0;
  memory.timestamp = 1'000'020;
  take(memory);
  ASSERT_EQ(batch.memory.size(), 1U);
  EXPECT_TRUE(batch.memory[0].freed);
  EXPECT_EQ(batch.memory[0].pool, instrumentation::MemoryPool::pinned);
  EXPECT_EQ(batch.memory[0].at_ns, 70);
  memory.timestamp = 0;
  take(memory);
  EXPECT_EQ(batch.memory.size(), 1U);
}

/// The library of the toolkit this was built with has every function; no driver is called.
TEST(CuptiApi, IsFoundOrSaysWhyNot) {
  const CuptiApi::Found& found = CuptiApi::find();
  if (found.api == nullptr) {
    EXPECT_THAT(found.reason,
                ::testing::AnyOf(::testing::HasSubstr("was not found"), ::testing::HasSubstr("version")));
  } else {
    EXPECT_EQ(found.reason, "");
    EXPECT_NE(found.api->ActivityFlushAll, nullptr);
  }
}

TEST_F(CuptiRecords, NcclsKernelsAndCopiesToTheHostSayTheirLane) {
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = 1'000'100;
  kernel.end = 1'000'400;
  for (const char* name :
       {"_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE", "gemm"}) {
    kernel.name = name;
    take(kernel);
  }
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.start = 1'000'100;
  copy.end = 1'000'400;
  for (const auto kind : {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD}) {
    copy.copyKind = static_cast<std::uint8_t>(kind);
    take(copy);
  }
  ASSERT_EQ(batch.work.size(), 4U);
  EXPECT_EQ(batch.work[0].usual_lane, instrumentation::StreamId::gpu_gather);
  EXPECT_EQ(batch.work[1].usual_lane, std::nullopt);
  EXPECT_EQ(batch.work[2].usual_lane, instrumentation::StreamId::gpu_copy);
  EXPECT_EQ(batch.work[3].usual_lane, std::nullopt);
}

/// A CUPTI that is newer than this program has calls that it cannot leave out by number.
TEST_F(CuptiRecords, ACallThatQueuesNothingIsNoLaunch) {
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.start = 1'000'100;
  call.end = 1'000'200;
  for (const CUpti_CallbackId id :
       {CUpti_CallbackId{CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020}, CUpti_CallbackId{100'000},
        CUpti_CallbackId{CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000}}) {
    call.cbid = id;
    call.correlationId = id;
    take(call);
  }
  ASSERT_EQ(batch.launches.size(), 1U);
  EXPECT_EQ(batch.launches[0].correlation,
            static_cast<std::uint32_t>(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
}

}  // namespace
}  // namespace shardscope::profile::cuda
