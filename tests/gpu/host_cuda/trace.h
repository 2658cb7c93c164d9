// Callbacks of the CUDA runtime of host threads for a profiler, as CUDA's driver has them for CUPTI: calls
// that queue work, the work itself, waits of the host, and memory. Each is called on the thread where the
// event happens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace shardscope::host_cuda {

/// Work of a CUDA stream.
struct Work {
  enum class Kind : std::uint8_t { kernel, copy, set };
  Kind kind{};
  std::uint32_t stream = 0;  ///< stream_number()
  const char* name = "";     ///< of a kernel; lives as long as the process
  dim3 grid{}, block{};
  cudaMemcpyKind direction{};  ///< of a copy
  std::size_t bytes = 0;
};

/// A query (look_not_ready) does not wait, but CUPTI records it as a wait.
enum class Wait : std::uint8_t { event, stream, look_not_ready };

/// Callbacks of queued work, called by the stream's thread.
class Queued {
 public:
  virtual ~Queued() = default;
  virtual void begins() = 0;
  virtual void ends() = 0;
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  /// At the begin of a call that queues work. Returns its correlation id, for call_ends().
  virtual std::uint32_t call_begins() = 0;
  virtual void call_ends(std::uint32_t correlation, const Work& work) = 0;
  /// Within the call; null: no callbacks for this work.
  virtual std::shared_ptr<Queued> queued(std::uint32_t correlation, const Work& work) = 0;
  /// At the begin of a wait. Returns its begin, for waited().
  virtual std::uint64_t wait_begins() = 0;
  virtual void waited(Wait wait, std::uint32_t stream, std::uint64_t since) = 0;
  virtual void memory(const void* data, std::size_t bytes, bool pinned, bool freed) = 0;
};

/// The program's one tracer, or null. Set once; it lives as long as the process.
[[nodiscard]] Tracer* tracer() noexcept;

/// A call of the program that queues `work`.
class TracedCall {
 public:
  explicit TracedCall(const Work& work)
      : tracer_(tracer()), work_(work), correlation_(tracer_ == nullptr ? 0 : tracer_->call_begins()) {}
  ~TracedCall() {
    if (tracer_ != nullptr) tracer_->call_ends(correlation_, work_);
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  /// `run` with the callbacks at its begin and end.
  [[nodiscard]] std::function<void()> traced(std::function<void()> run) const {
    auto queued = tracer_ == nullptr ? nullptr : tracer_->queued(correlation_, work_);
    if (!queued) return run;
    return [run = std::move(run), queued = std::move(queued)] {
      queued->begins();
      run();
      queued->ends();
    };
  }

 private:
  Tracer* const tracer_;
  const Work work_;
  const std::uint32_t correlation_;
};

/// A call in which the host waits.
class TracedWait {
 public:
  TracedWait(Wait wait, std::uint32_t stream)
      : tracer_(tracer()),
        wait_(wait),
        stream_(stream),
        since_(tracer_ == nullptr ? 0 : tracer_->wait_begins()) {}
  ~TracedWait() {
    if (tracer_ != nullptr) tracer_->waited(wait_, stream_, since_);
  }
  TracedWait(const TracedWait&) = delete;
  TracedWait& operator=(const TracedWait&) = delete;

 private:
  Tracer* const tracer_;
  const Wait wait_;
  const std::uint32_t stream_;
  const std::uint64_t since_;
};

}  // namespace shardscope::host_cuda

extern "C" {
/// For libraries that are loaded at run time: the program's, not their own.
void host_cuda_set_tracer(shardscope::host_cuda::Tracer* tracer);
std::uint32_t host_cuda_stream_number(cudaStream_t stream);
}
