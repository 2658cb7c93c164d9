// A CUDA stream with the interface of CPU streams. Work runs on the calling thread at once and launches
// kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/context.h"
#include "runtime/device/cuda/event.h"
#include "runtime/device/cuda/stamper.h"

namespace shardscope::device::cuda {

/// Words in pinned memory that CUDA streams wait for. Never freed before the device: they are few, one per
/// host stream that a CUDA stream has waited for.
class WaitWords {
 public:
  /// Uses the current device. Allocates at construction: pinning memory later may wait for streams, which may
  /// wait for a word.
  explicit WaitWords(std::string where);
  ~WaitWords();
  WaitWords(const WaitWords&) = delete;
  WaitWords& operator=(const WaitWords&) = delete;
  /// The word that follows `progress`.
  [[nodiscard]] std::atomic<std::uint64_t>* word_of(StreamProgress& progress);

 private:
  static constexpr std::size_t kCount = 512;
  const std::string where_;
  std::atomic<std::uint64_t>* words_ = nullptr;
  std::size_t used_ = 0;
};

/// Called for every event passed to emit() of a CUDA stream of this process (not emit_timed()), in the host's
/// order, on the emitting thread, between its launches. If it returns false the stream does not emit the
/// event. One observer at a time; null: none.
using StreamObserver = bool (*)(const instrumentation::Event& event);
void set_stream_observer(StreamObserver observer) noexcept;

class CudaStream final : public Stream {
 public:
  struct Shared {
    int device = 0;
    std::shared_ptr<EventPool> events;  ///< without timing
    Stamper* stamper = nullptr;
    WaitWords* words = nullptr;
  };
  /// `priority` as for cudaStreamCreateWithPriority.
  CudaStream(instrumentation::StreamId id, int priority, Shared shared, std::string where);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  /// Sets the workspace of the stream's kernels; see kernels::cuda::Context.
  void set_workspace(void* workspace);

  void run(std::function<void(const kernels::Exec&)> work) override;
  void wait(Event& event) override;
  void record(Event& event) override;
  void emit(const instrumentation::Event& event) override;
  void emit_timed(const instrumentation::Event& event, std::span<Event* const> points,
                  Complete complete) override;
  void synchronize() override;
  [[nodiscard]] instrumentation::StreamId id() const noexcept override { return id_; }
  [[nodiscard]] kernels::Backend backend() const noexcept override { return kernels::Backend::cuda; }
  [[nodiscard]] cudaStream_t handle() const noexcept { return stream_; }

 private:
  const instrumentation::StreamId id_;
  const Shared shared_;
  const std::string where_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<kernels::cuda::Context> context_;
  /// Host streams this one waited for, and their positions: if one fails, later results of this stream are
  /// invalid.
  struct Dependency {
    std::shared_ptr<StreamProgress> progress;
    std::uint64_t position = 0;
  };
  std::vector<Dependency> dependencies_;
};

}  // namespace shardscope::device::cuda
