// Timestamps of points on CUDA streams, without synchronization: a CUDA event is recorded at each point, and
// a separate thread determines when it was reached and emits.
//
// [Note: device time to host time]
// cudaEventElapsedTime gives the time between two events. Every half second the thread records an anchor on
// its own stream, on which nothing else is queued, and reads the host's clock before and after: the anchor is
// between the two readings (the best of a few tries is kept, half the bracket is the residual). If streams
// share the device's queues (CUDA_DEVICE_MAX_CONNECTIONS) an anchor waits for other work and its bracket is
// wide: then the previous one is kept, until it is the less accurate one (is_more_accurate). A timestamp is
// the anchor's host time plus the elapsed time since it. The anchor is the latest one when the timestamp was
// requested, so it is always earlier, and near enough for CUDA's float result to resolve 0.1 us.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/device/cuda/event.h"

namespace shardscope::device::cuda {

class Stamper {
 public:
  /// `device`: CUDA ordinal. Measures the first anchor before it returns.
  Stamper(int device, std::string where);
  /// Emits waiting events once the streams have reached them. Events to be completed from a time that does
  /// not arrive (its host stream has failed or is blocked) are dropped after half a second.
  ~Stamper();
  Stamper(const Stamper&) = delete;
  Stamper& operator=(const Stamper&) = delete;

  /// Emits `event` with the time at which `stream` reaches this point.
  void stamp(const instrumentation::Event& event, cudaStream_t stream) { stamp(event, stream, {}, nullptr); }
  /// The same, completed from `times`, which are reached before it.
  void stamp(const instrumentation::Event& event, cudaStream_t stream,
             std::vector<std::shared_ptr<ReachedTime>> times, Complete complete);
  /// Sets `time` to the time at which `stream`, whose lane is `lane`, reaches this point.
  void read(std::shared_ptr<ReachedTime> time, instrumentation::StreamId lane, cudaStream_t stream);
  /// Residual of the worst anchor so far.
  [[nodiscard]] std::int64_t residual_ns() const noexcept { return residual_ns_.load(); }
  /// Whether an anchor read within `bracket_ns` is more accurate than one with an error of `residual_ns` that
  /// is `age_ns` old, assuming a clock drift of at most 100 parts per million.
  [[nodiscard]] static constexpr bool is_more_accurate(std::int64_t bracket_ns, std::int64_t residual_ns,
                                                       std::int64_t age_ns) noexcept {
    return bracket_ns / 2 <= residual_ns + age_ns / 10'000;
  }

 private:
  struct Anchor {
    EventPool::Handle event;
    std::int64_t host_ns = 0;
    std::int64_t residual_ns = 0;
  };
  struct Waiting {
    instrumentation::Event event;  ///< of a reading: its lane only
    EventPool::Handle reached;
    std::shared_ptr<const Anchor> anchor;
    std::shared_ptr<ReachedTime> reading;  ///< set instead of emitting
    std::vector<std::shared_ptr<ReachedTime>> times;
    Complete complete = nullptr;
  };
  struct Lane {
    std::deque<Waiting> waiting;  ///< reached in this order
    std::int64_t last_ns = 0;
  };

  void run();
  void take_anchor();
  void queue(Waiting waiting, cudaStream_t stream);
  /// Emits the events of a lane that were reached; true if any was. `last`: drops those whose times have not
  /// arrived.
  bool settle(Lane& lane, bool last);

  const int device_;
  const std::string where_;
  const std::shared_ptr<EventPool> events_;
  cudaStream_t stream_ = nullptr;  ///< for anchors only
  std::atomic<std::int64_t> residual_ns_{0};

  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<Waiting> queue_;
  std::shared_ptr<const Anchor> anchor_;
  bool ends_ = false;

  std::array<Lane, instrumentation::kStreamCount> lanes_;  ///< the thread's own
  std::thread thread_;
};

}  // namespace shardscope::device::cuda
