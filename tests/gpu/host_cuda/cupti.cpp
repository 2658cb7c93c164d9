#include "tests/gpu/host_cuda/cupti.h"

#include <cupti.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/gpu/host_cuda/trace.h"

namespace shardscope::host_cuda {
namespace {

HostCupti g_control;

[[noreturn]] void broken(const char* rule) {
  std::fprintf(stderr, "host_cuda: CUPTI: %s\n", rule);
  std::abort();
}

struct Buffer {
  std::uint8_t* data = nullptr;
  std::size_t bytes = 0, used = 0;
  unsigned running = 0;  ///< records of work that has not ended
  bool full = false;
  bool given_back = false;
};

struct Thread {
  std::shared_ptr<Buffer> buffer;
  std::map<int, std::vector<std::uint64_t>> owners;  ///< by CUpti_ExternalCorrelationKind
};
thread_local Thread t_thread;

/// CUPTI's lock and what it guards.
struct State {
  std::mutex mutex;
  std::set<int> kinds;
  std::set<int> no_runtime_calls, no_driver_calls;  ///< left out of their kinds
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  CUpti_TimestampCallbackFunc timestamp = nullptr;
  std::vector<std::shared_ptr<Buffer>> buffers;  ///< all that the program has not got back
  std::size_t dropped = 0;
  std::uint32_t correlation = 100;
  CUpti_SubscriberHandle subscriber = nullptr;
  bool zeroed = false;
  bool all_waits = true;  ///< also looks at what is not ready
};
State& state() {
  static auto* one = new State;  // streams' threads outlive what is static
  return *one;
}

std::uint64_t realtime() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec * 1'000'000'000 + time.tv_nsec + g_control.clock_ns.load());
}
std::uint64_t now() {
  const auto read = state().timestamp;
  return read == nullptr ? realtime() : read();
}

void give_back(const std::shared_ptr<Buffer>& buffer) {
  buffer->given_back = true;
  std::erase(state().buffers, buffer);
  const auto complete = [buffer] {
    state().completed(nullptr, 0, buffer->data, buffer->bytes, buffer->used);
  };
  if (!g_control.late) return complete();
  std::thread([complete] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard lock(state().mutex);
    complete();
  }).detach();
}

/// Room for a record in the calling thread's buffer, zeros but for its kind; null if it was dropped.
template <typename Record>
Record* add(CUpti_ActivityKind kind, std::shared_ptr<Buffer>* where = nullptr) {
  static_assert(sizeof(Record) % 8 == 0);
  std::shared_ptr<Buffer>& current = t_thread.buffer;
  if (current && (current->given_back || current->used + sizeof(Record) > current->bytes)) {
    current->full = true;
    if (!current->given_back && current->running == 0) give_back(current);
    current.reset();
  }
  if (!current) {
    Buffer fresh;
    std::size_t most_records = 0;
    state().requested(&fresh.data, &fresh.bytes, &most_records);
    if (fresh.data == nullptr) {
      ++state().dropped;
      return nullptr;
    }
    if (reinterpret_cast<std::uintptr_t>(fresh.data) % 8 != 0) broken("a buffer is not aligned to 8 bytes");
    if (fresh.bytes < sizeof(Record)) broken("a buffer holds no record");
    for (std::size_t i = 0; state().zeroed && i < fresh.bytes; ++i)
      if (fresh.data[i] != 0) broken("a buffer declared as zeroed is not");
    current = std::make_shared<Buffer>(fresh);
    state().buffers.push_back(current);
  }
  auto* record = reinterpret_cast<Record*>(current->data + current->used);
  current->used += sizeof(Record);
  std::memset(record, 0, sizeof(Record));
  record->kind = kind;
  if (where != nullptr) *where = current;
  return record;
}

bool wanted(CUpti_ActivityKind kind) {
  return state().requested != nullptr && state().kinds.contains(static_cast<int>(kind));
}

/// A record of work, which gets its times when that has ended.
template <typename Record>
class Recorded final : public Queued {
 public:
  Recorded(std::shared_ptr<Buffer> buffer, Record* record) : buffer_(std::move(buffer)), record_(record) {
    ++buffer_->running;
  }
  void begins() override {
    realtime_ = g_control.realtime_work > 0 && g_control.realtime_work-- > 0;
    began_ = time();
  }
  void ends() override {
    const std::lock_guard lock(state().mutex);
    if (buffer_->given_back) return;  // no reader is left
    if (!g_control.no_times) {
      record_->start = began_;
      record_->end = time();
    }
    if (--buffer_->running == 0 && buffer_->full) give_back(buffer_);
  }

 private:
  [[nodiscard]] std::uint64_t time() const { return realtime_ ? realtime() : now(); }
  const std::shared_ptr<Buffer> buffer_;
  Record* const record_;
  std::uint64_t began_ = 0;
  bool realtime_ = false;
};

struct Calls {
  CUpti_CallbackId runtime, driver;
};
Calls calls_of(const Work& work) {
  switch (work.kind) {
    case Work::Kind::kernel:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel};
    case Work::Kind::copy:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync};
    case Work::Kind::set:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async};
  }
  return {};
}

class CuptiTracer final : public Tracer {
 public:
  std::uint32_t call_begins() override {
    const std::lock_guard lock(state().mutex);
    t_calls.push_back(now());
    return ++state().correlation;
  }

  std::shared_ptr<Queued> queued(std::uint32_t correlation, const Work& work) override {
    const std::lock_guard lock(state().mutex);
    std::shared_ptr<Buffer> buffer;
    const auto kept = [&]<typename Record>(Record* record) -> std::shared_ptr<Queued> {
      record->deviceId = 0;
      record->contextId = 1;
      record->streamId = work.stream;
      record->correlationId = correlation;
      return std::make_shared<Recorded<Record>>(buffer, record);
    };
    switch (work.kind) {
      case Work::Kind::kernel: {
        if (!wanted(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return nullptr;
        auto* record = add<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, &buffer);
        if (record == nullptr) return nullptr;
        record->name = work.name;
        record->gridX = static_cast<std::int32_t>(work.grid.x);
        record->gridY = static_cast<std::int32_t>(work.grid.y);
        record->gridZ = static_cast<std::int32_t>(work.grid.z);
        record->blockX = static_cast<std::int32_t>(work.block.x);
        record->blockY = static_cast<std::int32_t>(work.block.y);
        record->blockZ = static_cast<std::int32_t>(work.block.z);
        return kept(record);
      }
      case Work::Kind::copy: {
        if (!wanted(CUPTI_ACTIVITY_KIND_MEMCPY)) return nullptr;
        auto* record = add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, &buffer);
        if (record == nullptr) return nullptr;
        record->copyKind = work.direction == cudaMemcpyHostToDevice   ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                           : work.direction == cudaMemcpyDeviceToHost ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                                                      : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
        record->bytes = work.bytes;
        return kept(record);
      }
      case Work::Kind::set: {
        if (!wanted(CUPTI_ACTIVITY_KIND_MEMSET)) return nullptr;
        auto* record = add<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, &buffer);
        if (record == nullptr) return nullptr;
        record->bytes = work.bytes;
        return kept(record);
      }
    }
    return nullptr;
  }

  void call_ends(std::uint32_t correlation, const Work& work) override {
    const std::lock_guard lock(state().mutex);
    const std::uint64_t begin = t_calls.back();
    t_calls.pop_back();
    if (state().requested == nullptr) return;
    const Calls calls = calls_of(work);
    const auto records = [](CUpti_ActivityKind kind, const std::set<int>& left_out, CUpti_CallbackId call) {
      return wanted(kind) && !left_out.contains(static_cast<int>(call));
    };
    if (records(CUPTI_ACTIVITY_KIND_DRIVER, state().no_driver_calls, calls.driver))
      add_call(CUPTI_ACTIVITY_KIND_DRIVER, calls.driver, begin + 1, correlation);
    if (records(CUPTI_ACTIVITY_KIND_RUNTIME, state().no_runtime_calls, calls.runtime))
      add_call(CUPTI_ACTIVITY_KIND_RUNTIME, calls.runtime, begin, correlation);
  }

  std::uint64_t wait_begins() override {
    const std::lock_guard lock(state().mutex);
    return now();
  }
  void waited(Wait wait, std::uint32_t stream, std::uint64_t since) override {
    const std::lock_guard lock(state().mutex);
    if (!wanted(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
    if (wait == Wait::look_not_ready && !state().all_waits) return;
    auto* record = add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    if (record == nullptr) return;
    record->type = wait == Wait::stream ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
                                        : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    record->returnValue = wait == Wait::look_not_ready ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    ++g_control.waits;
    record->start = since;
    record->end = now();
    record->streamId = stream == UINT32_MAX ? CUPTI_SYNCHRONIZATION_INVALID_VALUE : stream;
    record->cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    record->correlationId = ++state().correlation;
  }
  void memory(const void* data, std::size_t bytes, bool pinned, bool freed) override {
    const std::lock_guard lock(state().mutex);
    if (!wanted(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
    auto* record = add<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    if (record == nullptr) return;
    record->memoryOperationType = freed ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                        : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    record->memoryKind = pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record->address = reinterpret_cast<std::uint64_t>(data);
    record->bytes = bytes;
    record->timestamp = now();
  }

 private:
  static void add_call(CUpti_ActivityKind kind, CUpti_CallbackId id, std::uint64_t begin,
                       std::uint32_t correlation) {
    if (wanted(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
      for (const auto& [owner_kind, stack] : t_thread.owners) {
        if (stack.empty()) continue;
        auto* owner = add<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        if (owner == nullptr) continue;
        owner->externalKind = static_cast<CUpti_ExternalCorrelationKind>(owner_kind);
        owner->externalId = stack.back();
        owner->correlationId = correlation;
      }
    }
    auto* call = add<CUpti_ActivityAPI>(kind);
    if (call == nullptr) return;
    call->cbid = id;
    call->start = begin;
    call->end = now();
    call->processId = static_cast<std::uint32_t>(getpid());
    call->threadId = static_cast<std::uint32_t>(syscall(SYS_gettid));
    call->correlationId = correlation;
  }

  inline static thread_local std::vector<std::uint64_t> t_calls;  ///< when those that are open began
};

/// Bytes of a record that this CUPTI makes; 0 for a kind that it does not.
std::size_t bytes_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    default:
      return 0;
  }
}

/// Without its kind the switch of a call has no effect, as in CUPTI 13.0 on an H100, although its header
/// documents one.
CUptiResult switch_call(std::set<int>& left_out, CUpti_CallbackId id, std::uint8_t on) {
  const std::lock_guard lock(state().mutex);
  if (on != 0)
    left_out.erase(static_cast<int>(id));
  else
    left_out.insert(static_cast<int>(id));
  return CUPTI_SUCCESS;
}

[[gnu::constructor]] void start() {
  static auto* tracer = new CuptiTracer;
  host_cuda_set_tracer(tracer);
}

}  // namespace
}  // namespace shardscope::host_cuda

using shardscope::host_cuda::state;

extern "C" {

shardscope::host_cuda::HostCupti* host_cupti() { return &shardscope::host_cuda::g_control; }

CUptiResult cuptiGetVersion(std::uint32_t* version) { return *version = CUPTI_API_VERSION, CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                        : "error of host_cuda's CUPTI";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  const std::lock_guard lock(state().mutex);
  if (state().subscriber != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  static int count = 0;
  *subscriber = state().subscriber = reinterpret_cast<CUpti_SubscriberHandle>(static_cast<intptr_t>(++count));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  const std::lock_guard lock(state().mutex);
  if (subscriber == nullptr || subscriber != state().subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  state().subscriber = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  return *timestamp = shardscope::host_cuda::now(), CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* id) {
  return *id = host_cuda_stream_number(stream), CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, std::size_t* bytes, void* value) {
  const std::lock_guard lock(state().mutex);
  if (attribute != CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER || *bytes != 1)
    return CUPTI_ERROR_INVALID_PARAMETER;
  state().zeroed = *static_cast<std::uint8_t*>(value) != 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  const std::lock_guard lock(state().mutex);
  state().requested = requested;
  state().completed = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc read) {
  const std::lock_guard lock(state().mutex);
  if (!state().kinds.empty())
    shardscope::host_cuda::broken("the clock is chosen before anything is recorded");
  state().timestamp = read;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(state().mutex);
  if (static_cast<int>(kind) == host_cupti()->refused_kind)
    return static_cast<CUptiResult>(host_cupti()->refusal.load());
  if (state().requested == nullptr) shardscope::host_cuda::broken("recording without callbacks for buffers");
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) state().no_runtime_calls.clear();
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER) state().no_driver_calls.clear();
  state().kinds.insert(static_cast<int>(kind));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(state().mutex);
  state().kinds.erase(static_cast<int>(kind));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t on) {
  return shardscope::host_cuda::switch_call(state().no_runtime_calls, id, on);
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, std::uint8_t on) {
  return shardscope::host_cuda::switch_call(state().no_driver_calls, id, on);
}
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t on) {
  const std::lock_guard lock(state().mutex);
  state().all_waits = on != 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  const std::lock_guard lock(state().mutex);
  const auto buffers = state().buffers;
  for (const auto& buffer : buffers)
    if (buffer->running == 0 || (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0)
      shardscope::host_cuda::give_back(buffer);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::size_t at = 0;
  if (*record != nullptr) {
    at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) +
         shardscope::host_cuda::bytes_of((*record)->kind);
  }
  if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(buffer + at);
  if (shardscope::host_cuda::bytes_of(next->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  const std::lock_guard lock(state().mutex);
  *dropped = std::exchange(state().dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  shardscope::host_cuda::t_thread.owners[static_cast<int>(kind)].push_back(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* id) {
  auto& stack = shardscope::host_cuda::t_thread.owners[static_cast<int>(kind)];
  if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *id = stack.back();
  stack.pop_back();
  return CUPTI_SUCCESS;
}
}
