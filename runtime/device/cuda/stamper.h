// Times of points on CUDA streams, without synchronizing anything: an event is recorded where a stamp is
// wanted, a thread of its own finds out when it was reached and emits.
//
// [Note: device time to host time]
// cudaEventElapsedTime gives the time between two events. Every half second the thread records an anchor on a
// stream of its own, on which nothing else is queued, and reads the host's clock before and after: the anchor
// lies between the two readings (the best of a few tries is kept, half the bracket is the residual). Where
// streams share the device's queues (CUDA_DEVICE_MAX_CONNECTIONS) an anchor waits for others' work and its
// bracket is wide: then the one before stays, until it is the less accurate one (is_more_accurate). A stamp
// is the anchor's host time plus the elapsed time since it. The anchor is the latest one known when the stamp
// was asked for, so it is always earlier than the stamp, and near enough for the float that CUDA answers with
// to resolve 0.1 us.
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
  /// `device`: CUDA ordinal. Takes the first anchor before it returns.
  Stamper(int device, std::string where);
  /// Emits what is still waiting once the streams have got there. What is to be completed from a time that
  /// does not come (the host stream it was asked of has failed, or is held up) is left out after half a
  /// second.
  ~Stamper();
  Stamper(const Stamper&) = delete;
  Stamper& operator=(const Stamper&) = delete;

  /// Emits `event` with the time at which `stream` gets to this point.
  void stamp(const instrumentation::Event& event, cudaStream_t stream) { stamp(event, stream, {}, nullptr); }
  /// The same, completed from `times`, which are reached before it.
  void stamp(const instrumentation::Event& event, cudaStream_t stream,
             std::vector<std::shared_ptr<ReachedTime>> times, Complete complete);
  /// Sets `time` to when `stream`, whose lane is `lane`, gets to this point.
  void read(std::shared_ptr<ReachedTime> time, instrumentation::StreamId lane, cudaStream_t stream);
  /// Residual of the worst anchor so far.
  [[nodiscard]] std::int64_t residual_ns() const noexcept { return residual_ns_.load(); }
  /// Whether an anchor read within `bracket_ns` is more accurate than one that may be wrong by `residual_ns`
  /// and is `age_ns` old: the two clocks are taken to drift apart by 100 parts per million at most.
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
  /// Emits the stamps of a lane that were reached; true if any was. `last`: those whose times have not come
  /// are left out.
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
