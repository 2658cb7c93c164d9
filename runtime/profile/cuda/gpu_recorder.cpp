#include "runtime/profile/gpu_recorder.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/post.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/profile/cuda/cupti_session.h"
#include "runtime/profile/gpu_lanes.h"
#include "runtime/profile/open_spans.h"
#include "runtime/profile/record_join.h"

namespace shardscope::profile {
namespace cuda {
namespace {

using namespace std::chrono_literals;
using instrumentation::Detail;
using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::StreamId;

/// Between two flushes, and two looks at the level.
constexpr auto kFlushEvery = 100ms;

struct ThreadSpans {
  OpenSpans open;
  KernelSpans kernels;
  PushedOwner pushed;
  std::uint64_t period = 0;  ///< of recording, of which `pushed` is right
};
thread_local ThreadSpans t_spans;

/// 0 while nothing is recorded, else the number of the period.
std::atomic<std::uint64_t> g_period{0};
std::atomic<bool> g_taken{false};  ///< a recorder exists in this process

/// Sees every event that goes to a CUDA stream, on the thread that launches. False: the event is not wanted.
bool on_stream_event(const Event& event) {
  ThreadSpans& spans = t_spans;
  const bool changed = spans.open.note(event);
  const std::uint64_t period = g_period.load(std::memory_order_acquire);
  // The driver records every kernel: two more CUDA events around each would be redundant.
  const bool emits = spans.kernels.emits(event, period != 0);
  if (period == 0) return emits;
  if (changed || spans.period != period) {
    spans.period = period;
    const CuptiApi& api = *CuptiApi::find().api;
    constexpr auto kKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    spans.pushed.replace_with(
        owner_id(spans.open.innermost()),
        [&]() -> std::optional<std::uint64_t> {
          std::uint64_t last = 0;
          if (api.ActivityPopExternalCorrelationId(kKind, &last) != CUPTI_SUCCESS) return std::nullopt;
          return last;
        },
        [&](std::uint64_t id) { return api.ActivityPushExternalCorrelationId(kKind, id) == CUPTI_SUCCESS; });
  }
  return emits;
}

class Recorder final : public GpuRecorder {
 public:
  Recorder(device::Device& device, NameId name_id)
      : device_(device), names_(std::move(name_id)), has_place_(!g_taken.exchange(true)) {
    cudaGetDevice(&ordinal_);
    if (has_place_) device::cuda::set_stream_observer(&on_stream_event);
    thread_ = std::thread([this] { run(); });
  }

  ~Recorder() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
    if (!has_place_) return;
    device::cuda::set_stream_observer(nullptr);
    g_taken = false;
  }

  State state() const noexcept override { return state_.load(); }
  std::string reason() const override {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  void flush() override {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = ++asked_;
    wake_.notify_all();
    done_.wait(lock, [&] { return answered_ >= wanted; });
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "zero-gpu-records");
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait_for(lock, kFlushEvery, [this] { return ends_ || asked_ != answered_; });
      const bool ends = ends_;
      const std::uint64_t asked = asked_;
      lock.unlock();
      try {
        round(ends);
      } catch (const std::exception& error) {
        give_up(error.what());  // memory is short: training goes on without kernels
      }
      lock.lock();
      answered_ = asked;
      done_.notify_all();
      if (ends) return;
    }
  }

  void round(bool ends) {
    const bool wanted = !ends && instrumentation::enabled(Detail::kernels);
    if (session_) {
      collect(wanted ? CuptiSession::Flush::complete : CuptiSession::Flush::forced);
      if (!wanted) stop();
    } else if (wanted && state_ == State::off) {
      start();
    } else if (!wanted && state_ == State::refused) {
      state_ = State::off;  // tried again at the next request
    }
  }

  void start() {
    if (const std::string reason = begin(); !reason.empty()) give_up(reason);
  }

  void give_up(const std::string& why) {
    if (has_place_) g_period = 0;
    session_.reset();
    join_.reset();
    std::string reason = "GPU kernels are not recorded: " + why + ". Training goes on.";
    instrumentation::post_message(instrumentation::Severity::warning, reason);
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    state_ = State::refused;
  }

  /// Empty, or why it cannot.
  std::string begin() {
    if (!has_place_) return "this process records another device already";
    const CuptiApi::Found& found = CuptiApi::find();
    if (found.api == nullptr) return found.reason;
    if (const cudaError_t result = cudaSetDevice(ordinal_); result != cudaSuccess)
      return std::string("cudaSetDevice failed: ") + cudaGetErrorString(result);
    GpuLanes lanes;
    const std::array<std::pair<device::Stream*, StreamId>, 4> streams{
        {{&device_.compute(), StreamId::gpu_compute},
         {&device_.gather(), StreamId::gpu_gather},
         {&device_.reduce(), StreamId::gpu_reduce},
         {&device_.copy(), StreamId::gpu_copy}}};
    for (const auto& [stream, lane] : streams) {
      std::uint32_t id = 0;
      const cudaStream_t handle = static_cast<device::cuda::CudaStream*>(stream)->handle();
      if (found.api->GetStreamIdEx(nullptr, handle, 0, &id) == CUPTI_SUCCESS) lanes.know(id, lane);
    }
    session_.emplace(*found.api);
    std::string reason = session_->begin();
    if (!reason.empty()) return reason;
    clock_ = session_->clock();
    session_->pair_clocks(clock_);
    if (!clock_.ready()) return "its clock cannot be read";
    join_.emplace(std::move(lanes), instrumentation::monotonic_now_ns());
    {
      const std::lock_guard lock(mutex_);
      reason_.clear();
    }
    state_ = State::recording;
    g_period = ++periods_;
    return {};
  }

  void stop() {
    g_period = 0;
    session_->end();
    // What was queued before may have come after the last flush.
    batch_.clear();
    session_->collect(clock_, names_, batch_);
    join_->add(batch_);
    emit(join_->take_all(instrumentation::monotonic_now_ns(), clock_.residual_ns()));
    join_.reset();
    session_.reset();
    state_ = State::off;
  }

  void collect(CuptiSession::Flush how) {
    session_->pair_clocks(clock_);
    const std::int64_t flushed_ns = instrumentation::monotonic_now_ns();
    batch_.clear();
    session_->collect(how, clock_, names_, batch_);
    join_->add(batch_);
    emit(join_->take(flushed_ns, clock_.residual_ns()));
    if (clock_.by_wall_clock() > 0 && !wall_clock_reported_) {
      wall_clock_reported_ = true;
      instrumentation::post_message(
          instrumentation::Severity::info,
          "CUPTI gives times of the GPU's work by the wall clock: if that is set while "
          "kernels are recorded, those then under way are misplaced or dropped");
    }
    emit({{flushed_ns,
           instrumentation::make<EventKind::gpu_clock>({.pairs = static_cast<std::uint32_t>(clock_.pairs()),
                                                        .residual_ns = clock_.residual_ns(),
                                                        .drift_ppb = clock_.drift_ppb()})}});
  }

  static void emit(const std::vector<TimedEvent>& events) {
    for (const auto& [at_ns, event] : events) instrumentation::emit_at(at_ns, event);
  }

  device::Device& device_;
  int ordinal_ = 0;  ///< current on the thread that made the recorder
  Names names_;
  const bool has_place_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool ends_ = false;
  std::uint64_t asked_ = 0, answered_ = 0;  ///< calls of flush()
  std::string reason_;
  std::atomic<State> state_{State::off};

  // The thread's own.
  std::optional<CuptiSession> session_;
  std::optional<RecordJoin> join_;
  RecordClock clock_;
  bool wall_clock_reported_ = false;
  RecordBatch batch_;
  inline static std::atomic<std::uint64_t> periods_{0};
  std::thread thread_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<GpuRecorder> record_gpu(device::Device& device, NameId name_id) {
  if (device.backend() != kernels::Backend::cuda) return nullptr;
  return std::make_unique<cuda::Recorder>(device, std::move(name_id));
}

}  // namespace shardscope::profile
