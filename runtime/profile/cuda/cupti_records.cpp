#include "runtime/profile/cuda/cupti_records.h"

#include <utility>

#include "runtime/profile/cuda/launch_calls.h"
#include "runtime/profile/kernel_name.h"
#include "runtime/profile/nccl_kernel.h"

namespace shardscope::profile::cuda {
namespace {

using instrumentation::GpuSync;
using instrumentation::GpuWork;
using instrumentation::MemoryPool;

GpuWork work_of_copy(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return GpuWork::host_to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return GpuWork::device_to_host;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return GpuWork::device_to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return GpuWork::peer_to_peer;
    default:
      return GpuWork::other_copy;
  }
}

MemoryPool pool_of(CUpti_ActivityMemoryKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return MemoryPool::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return MemoryPool::host;
    default:
      return MemoryPool::device;
  }
}

/// The common part of kernels, copies and memsets.
template <typename Record>
void take_work(const Record& record, GpuWork work, Names::Kernel name, std::int64_t amount,
               RecordClock& clock, RecordBatch& batch) {
  if (record.start == 0 || record.end < record.start) {
    ++batch.dropped;
    return;
  }
  const std::int64_t begin_ns = clock.to_host(record.start);
  const std::int64_t end_ns = clock.to_host(record.end);
  if (end_ns < begin_ns) {  // by different clocks
    ++batch.dropped;
    return;
  }
  batch.work.push_back(
      {work, name.id, record.streamId, record.correlationId, begin_ns, end_ns, amount, name.usual_lane});
}

void take_sync(const CUpti_ActivitySynchronization2& record, RecordClock& clock, RecordBatch& batch) {
  if (record.start == 0 || record.end < record.start) return;  // CUPTI could not time it
  if (record.returnValue != 0 || record.end - record.start < kShortestWaitNs) return;  // a query
  GpuSync sync{};
  switch (record.type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
      sync = GpuSync::event;
      break;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
      sync = GpuSync::stream;
      break;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
      sync = GpuSync::context;
      break;
    default:
      return;  // a stream that waits for an event blocks no host thread
  }
  const bool of_stream = record.streamId != CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  batch.syncs.push_back({sync, of_stream ? record.streamId : instrumentation::kNoId,
                         clock.to_host(record.start), clock.to_host(record.end)});
}

template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

}  // namespace

Names::Kernel Names::of_kernel(const char* symbol) {
  const std::string key = symbol == nullptr ? "kernel" : symbol;
  const auto known = kernels_.find(key);
  if (known != kernels_.end()) return known->second;
  const std::string name = kernel_name(key);
  return kernels_.emplace(key, Kernel{name_id_(name), lane_of_nccl_kernel(name)}).first->second;
}

Names::Kernel Names::of(GpuWork work) {
  static constexpr const char* kWords[] = {"kernel",         "copy host to device", "copy device to host",
                                           "copy on device", "copy peer to peer",   "copy",
                                           "memset"};
  static_assert(std::size(kWords) == instrumentation::kGpuWorkCount);
  const auto known = others_.find(static_cast<int>(work));
  if (known != others_.end()) return known->second;
  std::optional<instrumentation::StreamId> lane;
  if (work == GpuWork::host_to_device || work == GpuWork::device_to_host)
    lane = instrumentation::StreamId::gpu_copy;
  return others_
      .emplace(static_cast<int>(work), Kernel{name_id_(kWords[static_cast<std::size_t>(work)]), lane})
      .first->second;
}

void take_record(const CUpti_Activity& record, RecordClock& clock, Names& names, RecordBatch& batch) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = as<CUpti_ActivityKernel10>(record);
      const std::int64_t blocks = std::int64_t{kernel.gridX} * kernel.gridY * kernel.gridZ;
      const std::int64_t threads = blocks * kernel.blockX * kernel.blockY * kernel.blockZ;
      take_work(kernel, GpuWork::kernel, names.of_kernel(kernel.name), threads, clock, batch);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = as<CUpti_ActivityMemcpy6>(record);
      const GpuWork work = work_of_copy(copy.copyKind);
      take_work(copy, work, names.of(work), static_cast<std::int64_t>(copy.bytes), clock, batch);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = as<CUpti_ActivityMemcpyPtoP4>(record);
      take_work(copy, GpuWork::peer_to_peer, names.of(GpuWork::peer_to_peer),
                static_cast<std::int64_t>(copy.bytes), clock, batch);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = as<CUpti_ActivityMemset4>(record);
      take_work(set, GpuWork::memset, names.of(GpuWork::memset), static_cast<std::int64_t>(set.bytes), clock,
                batch);
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = as<CUpti_ActivityAPI>(record);
      if (call.returnValue != 0 || !queues_work(record.kind, call.cbid)) return;  // it queued nothing
      if (call.start == 0 || call.end < call.start) return;                       // CUPTI could not time it
      batch.launches.push_back(
          {call.correlationId, call.threadId, clock.to_host(call.start), clock.to_host(call.end)});
      return;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& external = as<CUpti_ActivityExternalCorrelation>(record);
      if (external.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        batch.owners.push_back({external.correlationId, external.externalId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      take_sync(as<CUpti_ActivitySynchronization2>(record), clock, batch);
      return;
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto& memory = as<CUpti_ActivityMemory4>(record);
      if (memory.timestamp == 0) return;
      batch.memory.push_back({pool_of(memory.memoryKind),
                              memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
                              static_cast<std::int64_t>(memory.bytes), memory.address,
                              clock.to_host(memory.timestamp)});
      return;
    }
    default:
      return;
  }
}

}  // namespace shardscope::profile::cuda
