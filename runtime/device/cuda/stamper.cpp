#include "runtime/device/cuda/stamper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "runtime/device/cuda/check.h"

namespace shardscope::device::cuda {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnchorEvery = 500ms;
constexpr int kTries = 5;
/// Interval between checks of events not yet reached. Timestamps lose no precision by it, only arrive later.
constexpr auto kLook = 200us;
constexpr std::int64_t kSpinAtMostNs = 200'000;
/// Maximum wait at the end for times of other streams.
constexpr auto kTimesAtMost = 500ms;

}  // namespace

Stamper::Stamper(int device, std::string where)
    : device_(device),
      where_(std::move(where)),
      events_(std::make_shared<EventPool>(cudaEventDefault, where_)) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange", where_);
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority", where_);
  take_anchor();
  thread_ = std::thread([this] { run(); });
}

Stamper::~Stamper() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  filled_.notify_one();
  thread_.join();
  cudaStreamDestroy(stream_);
}

void Stamper::stamp(const instrumentation::Event& event, cudaStream_t stream,
                    std::vector<std::shared_ptr<ReachedTime>> times, Complete complete) {
  Waiting waiting;
  waiting.event = event;
  waiting.times = std::move(times);
  waiting.complete = complete;
  queue(std::move(waiting), stream);
}

void Stamper::read(std::shared_ptr<ReachedTime> time, instrumentation::StreamId lane, cudaStream_t stream) {
  Waiting waiting;
  waiting.event.stream = lane;
  waiting.reading = std::move(time);
  queue(std::move(waiting), stream);
}

void Stamper::queue(Waiting waiting, cudaStream_t stream) {
  waiting.reached = events_->take();
  check(cudaEventRecord(waiting.reached.get(), stream), "cudaEventRecord", where_);
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake = queue_.empty();
    waiting.anchor = anchor_;
    queue_.push_back(std::move(waiting));
  }
  if (wake) filled_.notify_one();
}

void Stamper::take_anchor() {
  Anchor best;
  std::int64_t narrowest = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    EventPool::Handle event = events_->take();
    const std::int64_t before = instrumentation::monotonic_now_ns();
    check(cudaEventRecord(event.get(), stream_), "cudaEventRecord", where_);
    while (!reached(event.get(), where_)) {
      // Delayed by other streams' work: no good anchor any more, so do not keep a core busy.
      if (instrumentation::monotonic_now_ns() - before > kSpinAtMostNs) std::this_thread::sleep_for(kLook);
    }
    const std::int64_t after = instrumentation::monotonic_now_ns();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {std::move(event), before + (after - before) / 2, narrowest / 2};
  }
  // Only this thread changes the anchor.
  if (anchor_ != nullptr &&
      !is_more_accurate(narrowest, anchor_->residual_ns, best.host_ns - anchor_->host_ns))
    return;
  residual_ns_ = std::max(residual_ns_.load(), best.residual_ns);
  auto anchor = std::make_shared<const Anchor>(std::move(best));
  const std::lock_guard lock(mutex_);
  anchor_ = std::move(anchor);
}

bool Stamper::settle(Lane& lane, bool last) {
  bool any = false;
  while (!lane.waiting.empty()) {
    const Waiting& next = lane.waiting.front();
    if (!reached(next.reached.get(), where_)) break;
    // Reached on a lane that has not been checked since: the next check gets it.
    if (std::any_of(next.times.begin(), next.times.end(), [](const auto& time) { return *time == 0; })) {
      if (!last) break;
      lane.waiting.pop_front();
      any = true;
      continue;
    }
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, next.anchor->event.get(), next.reached.get()),
          "cudaEventElapsedTime", where_);
    const auto elapsed = static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
    // Two anchors may differ by their residuals; a lane's times must not decrease.
    lane.last_ns = std::max(lane.last_ns, next.anchor->host_ns + elapsed);
    if (next.reading) {
      *next.reading = lane.last_ns;
    } else if (next.complete != nullptr) {
      instrumentation::emit_at(lane.last_ns, completed(next.event, next.times, next.complete));
    } else {
      instrumentation::emit_at(lane.last_ns, next.event);
    }
    lane.waiting.pop_front();
    any = true;
  }
  return any;
}

void Stamper::run() {
  pthread_setname_np(pthread_self(), "zero-stamps");
  std::vector<Waiting> arrived;
  auto next_anchor = std::chrono::steady_clock::now() + kAnchorEvery;
  std::optional<std::chrono::steady_clock::time_point> give_up;
  try {
    check(cudaSetDevice(device_), "cudaSetDevice", where_);
    for (;;) {
      const bool idle =
          std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.waiting.empty(); });
      {
        std::unique_lock lock(mutex_);
        if (idle) {
          filled_.wait_until(lock, next_anchor, [this] { return !queue_.empty() || ends_; });
        } else {
          filled_.wait_for(lock, kLook, [this] { return !queue_.empty() || ends_; });
        }
        if (ends_ && queue_.empty() && idle) return;
        if (ends_ && !give_up) give_up = std::chrono::steady_clock::now() + kTimesAtMost;
        arrived.swap(queue_);
      }
      for (Waiting& one : arrived) {
        lanes_[static_cast<std::size_t>(one.event.stream)].waiting.push_back(std::move(one));
      }
      arrived.clear();
      bool any = false;
      const bool last = give_up && std::chrono::steady_clock::now() >= *give_up;
      for (Lane& lane : lanes_) any = settle(lane, last) || any;
      if (!any && !idle) std::this_thread::sleep_for(kLook);
      if (std::chrono::steady_clock::now() >= next_anchor) {
        take_anchor();
        next_anchor = std::chrono::steady_clock::now() + kAnchorEvery;
      }
    }
  } catch (const BackendError&) {
    // The device has failed; the host thread's next call reports it. Events waiting for a timestamp are
    // dropped, and spans that they would have ended stay open.
  }
}

}  // namespace shardscope::device::cuda
