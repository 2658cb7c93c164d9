#include "runtime/profile/cuda/cupti_session.h"

#include <time.h>

#include <array>
#include <chrono>
#include <thread>

#include "instrumentation/clock.h"
#include "runtime/profile/cuda/launch_calls.h"

namespace shardscope::profile::cuda {
namespace {

/// A clock is read a few times; the narrowest bracket is the most accurate.
constexpr int kReadings = 5;
/// CUPTI may return buffers on its own thread, shortly after the flush that requested them.
constexpr int kWaitsForBuffers = 50;
constexpr auto kWaitForBuffers = std::chrono::milliseconds(1);

constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                            CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMCPY2,
                            CUPTI_ACTIVITY_KIND_MEMSET,
                            CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                            CUPTI_ACTIVITY_KIND_MEMORY2,
                            CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                            CUPTI_ACTIVITY_KIND_RUNTIME,
                            CUPTI_ACTIVITY_KIND_DRIVER};

void CUPTIAPI on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = buffers().take(
      instrumentation::monotonic_now_ns());  // null when there is none: CUPTI counts what it drops
  *size = *buffer == nullptr ? 0 : buffers().bytes_each();
  *most_records = 0;  // no limit but the buffer's size
}

void CUPTIAPI on_buffer_completed(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                                  std::size_t /*size*/, std::size_t valid) {
  if (buffer != nullptr) buffers().filled(buffer, valid);
}

void CUPTIAPI on_call(void* /*user*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                      const void* /*data*/) {
}  // no callbacks are enabled; the subscription only reserves the place of the one tool

/// The host's clock, for CUPTI to read.
std::uint64_t CUPTIAPI host_clock() {
  return static_cast<std::uint64_t>(instrumentation::monotonic_now_ns());
}

/// Once per process: after a second registration the first kernels of each period have CUPTI's own clock.
bool give_clock(const CuptiApi& api) {
  static const bool given = api.ActivityRegisterTimestampCallback(host_clock) == CUPTI_SUCCESS;
  return given;
}

/// `read` returns the other clock's nanoseconds, or 0 on failure.
template <typename Read>
ClockPair pair_of(const Read& read) {
  ClockPair best{0, 1, 0};  // backwards: ClockFit leaves it out
  for (int i = 0; i < kReadings; ++i) {
    ClockPair pair;
    pair.host_before_ns = instrumentation::monotonic_now_ns();
    pair.other_ns = read();
    if (pair.other_ns == 0) continue;
    pair.host_after_ns = instrumentation::monotonic_now_ns();
    const bool any = best.other_ns != 0;
    if (any && pair.host_after_ns - pair.host_before_ns >= best.host_after_ns - best.host_before_ns) continue;
    best = pair;
  }
  return best;
}

}  // namespace

BufferPool& buffers() {
  static auto* pool = new BufferPool(kBufferBytes, kMostBuffers);
  return *pool;
}

std::string CuptiSession::failure(CUptiResult result, const char* call) const {
  if (result == CUPTI_SUCCESS) return {};
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || result == CUPTI_ERROR_MAX_LIMIT_REACHED) {
    return "another profiler (Nsight Systems, Nsight Compute, compute-sanitizer, PyTorch's own) holds CUPTI, "
           "which serves one at a time; run without it";
  }
  const char* text = nullptr;
  api_.GetResultString(result, &text);
  std::string out = std::string(call) + " failed: " + (text == nullptr ? "unknown error" : text);
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
      result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES) {
    out += "; ask the administrator to allow profiling for users (NVreg_RestrictProfilingToAdminUsers=0)";
  }
  return out;
}

void CuptiSession::leave_out_calls() const noexcept {
  // An error for a call that this driver does not have is harmless.
  for (CUpti_CallbackId call = 1; call < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++call)
    if (!queues_work(CUPTI_ACTIVITY_KIND_RUNTIME, call)) api_.ActivityEnableRuntimeApi(call, 0);
  for (CUpti_CallbackId call = 1; call < CUPTI_DRIVER_TRACE_CBID_SIZE; ++call)
    if (!queues_work(CUPTI_ACTIVITY_KIND_DRIVER, call)) api_.ActivityEnableDriverApi(call, 0);
}

std::string CuptiSession::enable() {
  std::uint8_t zeroed = 1;  // BufferPool clears what was used
  std::size_t size = sizeof zeroed;
  api_.ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
  if (const auto result = api_.ActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
      result != CUPTI_SUCCESS) {
    return failure(result, "cuptiActivityRegisterCallbacks");
  }
  gave_clock_ = give_clock(api_);
  // Queries that return "not ready" are no waits; the runtime's timestamps make thousands.
  api_.ActivityEnableAllSyncRecords(0);
  // Calls and owners first: work without a recorded launch would wait for one.
  for (auto kind = kKinds.rbegin(); kind != kKinds.rend(); ++kind) {
    if (const auto result = api_.ActivityEnable(*kind); result != CUPTI_SUCCESS)
      return failure(result, "cuptiActivityEnable");
    if (*kind == CUPTI_ACTIVITY_KIND_RUNTIME) leave_out_calls();
  }
  return {};
}

std::string CuptiSession::begin() {
  if (on_) return {};
  if (const auto result = api_.Subscribe(&subscriber_, on_call, nullptr); result != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    return failure(result, "cuptiSubscribe");
  }
  on_ = true;
  // Buffers returned after the end of the previous period belong to no period.
  for (const BufferPool::Filled& late : buffers().collect()) buffers().give(late.data);
  std::string reason = enable();
  if (!reason.empty()) end();
  return reason;
}

void CuptiSession::end() noexcept {
  if (!on_) return;
  for (const auto kind : kKinds) api_.ActivityDisable(kind);
  // While still subscribed: filled buffers are returned now, and collect() reads them.
  api_.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (int i = 0; i < kWaitsForBuffers && buffers().held_since(INT64_MIN) != INT64_MAX; ++i)
    std::this_thread::sleep_for(kWaitForBuffers);
  if (subscriber_ != nullptr) api_.Unsubscribe(subscriber_);
  subscriber_ = nullptr;
  on_ = false;
}

void CuptiSession::pair_clocks(RecordClock& clock) const {
  const ClockPair cupti = pair_of([this]() -> std::int64_t {
    std::uint64_t ns = 0;
    return api_.GetTimestamp(&ns) == CUPTI_SUCCESS ? static_cast<std::int64_t>(ns) : 0;
  });
  const ClockPair wall = pair_of([]() -> std::int64_t {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  });
  clock.add(cupti, wall);
}

void CuptiSession::collect(Flush how, RecordClock& clock, Names& names, RecordBatch& batch) {
  api_.ActivityFlushAll(how == Flush::forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  collect(clock, names, batch);
}

void CuptiSession::collect(RecordClock& clock, Names& names, RecordBatch& batch) {
  // Before collecting: a buffer that arrives in between is neither held nor in this batch.
  batch.held_since_ns = buffers().held_since(instrumentation::monotonic_now_ns() - kHeldAtMostNs);
  for (const BufferPool::Filled& buffer : buffers().collect()) {
    CUpti_Activity* record = nullptr;
    while (api_.ActivityGetNextRecord(buffer.data, buffer.bytes, &record) == CUPTI_SUCCESS)
      take_record(*record, clock, names, batch);
    buffers().give(buffer.data);
  }
  std::size_t dropped = 0;
  if (api_.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) batch.dropped += dropped;
}

}  // namespace shardscope::profile::cuda
