#include "runtime/device/cpu/stream.h"

#include <dlfcn.h>
#include <pthread.h>

#include <string>
#include <type_traits>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/nvtx_ranges.h"
#include "runtime/device/error.h"
#if defined(__SSE__)
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace shardscope::device {
namespace {

const char* thread_name(instrumentation::StreamId id) {
  using enum instrumentation::StreamId;
  switch (id) {
    case host:
      return "zero-host";
    case compute:
      return "zero-compute";
    case gather:
      return "zero-gather";
    case reduce:
      return "zero-reduce";
    case copy:
      return "zero-copy";
    case nvme:
      return "zero-nvme";
    case worker:
      return "zero-worker";
    default:  // the lanes of the GPU have no thread
      break;
  }
  return "zero-stream";
}

/// The same on every stream, so that a kernel's result does not depend on the stream.
void prepare_thread(instrumentation::StreamId id, int threads) {
  pthread_setname_np(pthread_self(), thread_name(id));
#if defined(__SSE__)
  // Subnormal operands cost a hundred times a normal one on many CPUs (tails of softmax and of the second
  // moment), and are irrelevant to training; 16-bit conversions are not affected by these modes.
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
  // oneDNN takes the number of threads from OpenMP; without this each stream would start one thread per core.
  // Looked up at run time, because nothing else here needs OpenMP.
  if (void* symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(symbol)(threads);
  }
}

CpuEvent& as_cpu_event(Event& event) {
  auto* cpu = dynamic_cast<CpuEvent*>(&event);
  if (cpu == nullptr) {
    throw BackendError("event", 0,
                       "the event belongs to another device; make it with this device's make_event",
                       "device/cpu");
  }
  return *cpu;
}

}  // namespace

std::vector<std::shared_ptr<ReachedTime>> times_of(std::span<Event* const> points) {
  std::vector<std::shared_ptr<ReachedTime>> times;
  times.reserve(points.size());
  for (Event* point : points) {
    times.push_back(as_cpu_event(*point).time_);
    if (times.back() != nullptr) continue;
    throw BackendError("emit_timed", 0,
                       "an event keeps no time; make it with make_timed_event and record it first",
                       "device/cpu");
  }
  return times;
}

instrumentation::Event completed(instrumentation::Event event,
                                 std::span<const std::shared_ptr<ReachedTime>> times, Complete complete) {
  std::vector<std::int64_t> reached_ns;
  reached_ns.reserve(times.size());
  for (const std::shared_ptr<ReachedTime>& time : times) reached_ns.push_back(time->load());
  complete(event, reached_ns);
  return event;
}

void CpuEvent::host_wait() {
  if (!progress_) return;
  if (const std::exception_ptr failure = progress_->wait(position_)) std::rethrow_exception(failure);
}

CpuStream::CpuStream(instrumentation::StreamId id, int threads)
    : id_(id), exec_{kernels::Backend::cpu, nullptr, nullptr, threads}, worker_([this] { work_loop(); }) {}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  filled_.notify_one();
  worker_.join();
}

void CpuStream::push(Item item) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    ++submitted_;
    wake = std::exchange(worker_waits_, false);
  }
  if (wake) filled_.notify_one();
}

template <typename Do>
bool CpuStream::at_once(Do&& what) {
  const std::lock_guard lock(mutex_);
  if (!worker_waits_ || ring_ == nullptr || progress_->failed()) return false;
  what(*ring_);
  return true;
}

void CpuStream::run(std::function<void(const kernels::Exec&)> work) { push(std::move(work)); }

void CpuStream::wait(Event& event) {
  CpuEvent& cpu = as_cpu_event(event);
  if (Point point = cpu.device_point()) {
    push(std::move(point));
    return;
  }
  // Nothing to wait for, or ordered already by this stream's own queue. (An event reached with a failure
  // is queued all the same: the failure must reach the work that depends on it.)
  if (!cpu.progress_ || cpu.progress_ == progress_) return;
  if (cpu.reached() && !cpu.progress_->failed()) return;
  push(WaitFor{cpu.progress_, cpu.position_});
}

void CpuStream::record(Event& event) {
  CpuEvent& cpu = as_cpu_event(event);
  cpu.forget_device_point();
  if (const std::shared_ptr<ReachedTime> time = cpu.new_time()) {
    const auto note = [time](auto&&) { *time = instrumentation::monotonic_now_ns(); };
    if (!at_once(note)) run(note);
  }
  cpu.progress_ = progress_;
  cpu.position_ = submitted_;
}

void CpuStream::emit(const instrumentation::Event& event) {
  if (!instrumentation::enabled(instrumentation::detail_of(event.kind))) return;
  instrumentation::nvtx::note(event);  // by the host that issues it, as on CUDA
  if (!at_once([&event](instrumentation::Ring& ring) { ring.push(event); })) push(event);
}

void CpuStream::emit_timed(const instrumentation::Event& event, std::span<Event* const> points,
                           Complete complete) {
  if (!instrumentation::enabled(instrumentation::detail_of(event.kind))) return;
  auto times = times_of(points);
  if (at_once([&](instrumentation::Ring& ring) { ring.push(completed(event, times, complete)); })) return;
  run([event, complete, times = std::move(times)](const kernels::Exec&) {
    instrumentation::emit(completed(event, times, complete));
  });
}

void CpuStream::synchronize() {
  if (std::this_thread::get_id() == worker_.get_id()) {
    throw BackendError("synchronize", 0, "a stream cannot wait for itself; call it from the host thread",
                       thread_name(id_));
  }
  if (const std::exception_ptr failure = progress_->wait(submitted_)) std::rethrow_exception(failure);
}

void CpuStream::run_item(Item& item) {
  std::visit(
      [this](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, WaitFor>) {
          // Later work would read missing data, so the other stream's failure is this stream's too.
          if (const std::exception_ptr failure = what.progress->wait(what.position)) {
            std::rethrow_exception(failure);
          }
        } else if constexpr (std::is_same_v<What, Point>) {
          what->host_wait();
        } else if constexpr (std::is_same_v<What, instrumentation::Event>) {
          instrumentation::emit(what);
        } else {
          what(exec_);
        }
      },
      item);
}

void CpuStream::work_loop() {
  prepare_thread(id_, exec_.threads);
  std::vector<Item> batch;
  std::uint64_t position = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      while (queue_.empty() && !ends_) {
        ring_ = instrumentation::detail::t_ring;
        worker_waits_ = true;
        filled_.wait(lock);
      }
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    for (Item& item : batch) {
      ++position;
      if (!progress_->failed()) {
        try {
          run_item(item);
        } catch (...) {
          progress_->fail(position, std::current_exception());
        }
      }
      // Captures of the work are destroyed before its position counts as reached.
      item = instrumentation::Event{};
      progress_->advance(position);
    }
    batch.clear();
  }
}

}  // namespace shardscope::device
