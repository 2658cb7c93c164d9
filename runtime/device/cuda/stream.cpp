#include "runtime/device/cuda/stream.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "instrumentation/emitter.h"
#include "instrumentation/nvtx_ranges.h"
#include "runtime/device/cuda/check.h"

namespace shardscope::device::cuda {
namespace {

CudaEvent& as_cuda_event(Event& event, const std::string& where) {
  auto* own = dynamic_cast<CudaEvent*>(&event);
  if (own == nullptr) {
    throw BackendError("event", 0,
                       "the event belongs to another device; make it with this device's make_event", where);
  }
  return *own;
}

std::atomic<StreamObserver> g_observer{nullptr};

using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned);

/// The driver's cuStreamWaitValue64, found at run time: if linked, the program could not start without
/// libcuda, even on the CPU.
WaitValue wait_value(const std::string& where) {
  static const WaitValue found = [&where] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult state{};
    check(
        cudaGetDriverEntryPointByVersion("cuStreamWaitValue64", &function, 12000, cudaEnableDefault, &state),
        "cudaGetDriverEntryPointByVersion", where);
    return reinterpret_cast<WaitValue>(function);
  }();
  if (found == nullptr) {
    throw BackendError("cuStreamWaitValue64", 0,
                       "the driver does not have it; use a driver for CUDA 12 or newer", where);
  }
  return found;
}

}  // namespace

void set_stream_observer(StreamObserver observer) noexcept {
  g_observer.store(observer, std::memory_order_relaxed);
}

WaitWords::WaitWords(std::string where) : where_(std::move(where)) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, kCount * sizeof *words_, cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc", where_);
  words_ = static_cast<std::atomic<std::uint64_t>*>(memory);
  for (std::size_t i = 0; i < kCount; ++i) new (words_ + i) std::atomic<std::uint64_t>(0);
}

WaitWords::~WaitWords() { cudaFreeHost(words_); }

std::atomic<std::uint64_t>* WaitWords::word_of(StreamProgress& progress) {
  if (auto* known = progress.mirror()) return known;
  if (used_ == kCount) {
    throw BackendError("wait", 0,
                       "CUDA streams have waited for more than " + std::to_string(kCount) +
                           " host streams; make streams once and keep them",
                       where_);
  }
  return progress.mirror_to(words_[used_++]);
}

CudaStream::CudaStream(instrumentation::StreamId id, int priority, Shared shared, std::string where)
    : id_(id), shared_(std::move(shared)), where_(std::move(where)) {
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority", where_);
}

CudaStream::~CudaStream() {
  context_.reset();
  cudaStreamDestroy(stream_);
}

void CudaStream::set_workspace(void* workspace) {
  context_ = std::make_unique<kernels::cuda::Context>(stream_, workspace);
}

void CudaStream::run(std::function<void(const kernels::Exec&)> work) {
  work(kernels::Exec{kernels::Backend::cuda, context_.get(), nullptr, 1});
}

void CudaStream::wait(Event& event) {
  CudaEvent& own = as_cuda_event(event, where_);
  if (own.point_) {
    check(cudaStreamWaitEvent(stream_, own.point_->event(), 0), "cudaStreamWaitEvent", where_);
    return;
  }
  if (!own.progress()) return;
  StreamProgress& progress = *own.progress();
  if (const std::exception_ptr failure = progress.failure_until(own.position()))
    std::rethrow_exception(failure);
  if (progress.reached(own.position())) return;
  // The stream waits for a word of host memory written by the worker thread: no host thread is blocked.
  const auto* word = shared_.words->word_of(progress);
  const CUresult result = wait_value(where_)(stream_, reinterpret_cast<CUdeviceptr>(word), own.position(),
                                             CU_STREAM_WAIT_VALUE_GEQ);
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    // A driver without it (some virtual machines): the host waits instead, which is slower but correct.
    if (const std::exception_ptr failure = progress.wait(own.position())) std::rethrow_exception(failure);
    return;
  }
  if (result != CUDA_SUCCESS) {
    throw BackendError("cuStreamWaitValue64", static_cast<int>(result),
                       "the driver refused to wait for a word of host memory", where_);
  }
  for (Dependency& known : dependencies_) {
    if (known.progress != own.progress()) continue;
    known.position = std::max(known.position, own.position());
    return;
  }
  dependencies_.push_back({own.progress(), own.position()});
}

void CudaStream::record(Event& event) {
  CudaEvent& own = as_cuda_event(event, where_);
  EventPool::Handle handle = shared_.events->take();
  check(cudaEventRecord(handle.get(), stream_), "cudaEventRecord", where_);
  own.forget_progress();
  own.point_ = std::make_shared<const CudaPoint>(std::move(handle), shared_.device, where_);
  if (const std::shared_ptr<ReachedTime> time = own.new_time()) shared_.stamper->read(time, id_, stream_);
}

void CudaStream::emit(const instrumentation::Event& event) {
  if (!instrumentation::enabled(instrumentation::detail_of(event.kind))) return;
  instrumentation::nvtx::note(event);
  const StreamObserver observer = g_observer.load(std::memory_order_relaxed);
  if (observer != nullptr && !observer(event)) return;
  shared_.stamper->stamp(event, stream_);
}

void CudaStream::emit_timed(const instrumentation::Event& event, std::span<Event* const> points,
                            Complete complete) {
  if (!instrumentation::enabled(instrumentation::detail_of(event.kind))) return;
  shared_.stamper->stamp(event, stream_, times_of(points), complete);
}

void CudaStream::synchronize() {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", where_);
  for (const Dependency& known : dependencies_) {
    if (const std::exception_ptr failure = known.progress->failure_until(known.position)) {
      std::rethrow_exception(failure);
    }
  }
}

}  // namespace shardscope::device::cuda
