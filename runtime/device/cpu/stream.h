// A stream on the CPU: a worker thread that runs a queue in order. Waits block in the kernel, never spin:
// several ranks with four streams each share few cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "instrumentation/ring.h"
#include "runtime/device/cpu/stream_progress.h"
#include "runtime/device/device.h"

namespace shardscope::device {

/// A point in the work of a stream that is not a CPU stream.
class DevicePoint {
 public:
  virtual ~DevicePoint() = default;
  [[nodiscard]] virtual bool reached() const = 0;
  virtual void host_wait() const = 0;  ///< blocks the calling thread; throws BackendError
};

/// When a point was reached, nanoseconds of the monotonic clock; 0 until then. One per recording.
using ReachedTime = std::atomic<std::int64_t>;

class CpuEvent : public Event {
 public:
  enum class Timing : std::uint8_t { none, kept };
  explicit CpuEvent(Timing timing = Timing::none) : timing_(timing) {}
  [[nodiscard]] bool reached() const override { return !progress_ || progress_->reached(position_); }
  void host_wait() override;

 protected:
  /// The point at which the event was last recorded, if not on a CPU stream. Such an event belongs to a
  /// device with streams of both kinds.
  [[nodiscard]] virtual std::shared_ptr<const DevicePoint> device_point() const { return nullptr; }
  virtual void forget_device_point() {}
  [[nodiscard]] const std::shared_ptr<StreamProgress>& progress() const noexcept { return progress_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  void forget_progress() { progress_.reset(); }
  /// A cell for the time of the recording made now; null if none is kept.
  [[nodiscard]] std::shared_ptr<ReachedTime> new_time() {
    time_ = timing_ == Timing::kept ? std::make_shared<ReachedTime>(0) : nullptr;
    return time_;
  }
  [[nodiscard]] const std::shared_ptr<ReachedTime>& time() const noexcept { return time_; }

 private:
  friend std::vector<std::shared_ptr<ReachedTime>> times_of(std::span<Event* const> points);
  friend class CpuStream;
  // shared_ptr: as in CUDA an event may be destroyed, or a stream end, while others still wait for it.
  std::shared_ptr<StreamProgress> progress_;
  std::uint64_t position_ = 0;
  Timing timing_ = Timing::none;
  // shared_ptr: a stream fills it, another reads it, and the event may be recorded again in between.
  std::shared_ptr<ReachedTime> time_;
};

/// Times of timed events; throws BackendError if one keeps no time or was never recorded.
[[nodiscard]] std::vector<std::shared_ptr<ReachedTime>> times_of(std::span<Event* const> points);

/// `event`, completed by `complete` from these times.
[[nodiscard]] instrumentation::Event completed(instrumentation::Event event,
                                               std::span<const std::shared_ptr<ReachedTime>> times,
                                               Complete complete);

class CpuStream final : public Stream {
 public:
  /// `threads`: number that a kernel on this stream may use.
  CpuStream(instrumentation::StreamId id, int threads);
  /// Runs what is queued, then ends the worker.
  ~CpuStream() override;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  void run(std::function<void(const kernels::Exec&)> work) override;
  void wait(Event& event) override;
  void record(Event& event) override;
  void emit(const instrumentation::Event& event) override;
  void emit_timed(const instrumentation::Event& event, std::span<Event* const> points,
                  Complete complete) override;
  void synchronize() override;
  [[nodiscard]] instrumentation::StreamId id() const noexcept override { return id_; }
  [[nodiscard]] kernels::Backend backend() const noexcept override { return kernels::Backend::cpu; }

 private:
  struct WaitFor {
    std::shared_ptr<StreamProgress> progress;
    std::uint64_t position = 0;
  };
  using Point = std::shared_ptr<const DevicePoint>;
  using Item =
      std::variant<std::function<void(const kernels::Exec&)>, WaitFor, Point, instrumentation::Event>;

  void push(Item item);
  /// [Note: events of an idle stream]
  /// Calls what(ring) with the worker's ring if the worker is idle; otherwise does nothing and returns false.
  /// An event is emitted when the stream reaches it: for an idle stream that is now, and waking its thread
  /// for it would cost a futex call and context switches. The ring has one producer at a time: the worker
  /// sleeps under the mutex held here.
  template <typename Do>
  [[nodiscard]] bool at_once(Do&& what);
  void work_loop();
  void run_item(Item& item);

  const instrumentation::StreamId id_;
  const kernels::Exec exec_;
  std::shared_ptr<StreamProgress> progress_ = std::make_shared<StreamProgress>();
  std::uint64_t submitted_ = 0;  ///< host thread only

  std::mutex mutex_;
  std::condition_variable filled_;
  // The host appends here; the worker swaps it with its own emptied vector, so in the steady state
  // neither allocates.
  std::vector<Item> queue_;
  bool worker_waits_ = false;
  instrumentation::Ring* ring_ = nullptr;  ///< the worker's, once it has emitted
  bool ends_ = false;
  std::thread worker_;  ///< last: starts when all of the above exists
};

}  // namespace shardscope::device
