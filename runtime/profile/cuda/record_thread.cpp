#include "runtime/profile/cuda/record_thread.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/event_fields.h"
#include "runtime/profile/cuda/call_owners.h"

namespace shardscope::profile::cuda {
namespace {

using namespace std::chrono_literals;
using instrumentation::EventKind;

/// Interval between flushes and checks of the level.
constexpr auto kFlushEvery = 100ms;

std::atomic<bool> g_taken{false};  ///< a recorder exists in this process

}  // namespace

RecordThread::RecordThread(RecordSink sink, Prepare prepare)
    : sink_(std::move(sink)),
      prepare_(std::move(prepare)),
      has_place_(!g_taken.exchange(true)),
      names_(sink_.name_id) {
  thread_ = std::thread([this] { run(); });
}

RecordThread::~RecordThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (has_place_) g_taken = false;
}

std::string RecordThread::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void RecordThread::flush() {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = ++asked_;
  wake_.notify_all();
  done_.wait(lock, [&] { return answered_ >= wanted; });
}

void RecordThread::leave(bool left) {
  {
    const std::lock_guard lock(mutex_);
    left_ = left;
  }
  flush();
}

void RecordThread::run() {
  pthread_setname_np(pthread_self(), "gpu-records");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kFlushEvery, [this] { return ends_ || asked_ != answered_; });
    const bool ends = ends_, left = left_;
    const std::uint64_t asked = asked_;
    lock.unlock();
    try {
      round(ends || left);
    } catch (const std::exception& error) {
      give_up(error.what());  // memory is short: training goes on without kernels
    }
    lock.lock();
    answered_ = asked;
    done_.notify_all();
    if (ends) return;
  }
}

void RecordThread::round(bool ends) {
  const bool wanted = !ends && sink_.wanted();
  if (session_) {
    collect(wanted ? CuptiSession::Flush::complete : CuptiSession::Flush::forced);
    if (!wanted) stop();
  } else if (wanted && state_ == State::off) {
    start();
  } else if (!wanted && state_ == State::refused) {
    state_ = State::off;  // tried again at the next request
  }
}

void RecordThread::start() {
  if (const std::string reason = begin(); !reason.empty()) give_up(reason);
}

void RecordThread::give_up(const std::string& why) {
  if (has_place_) end_period();
  session_.reset();
  join_.reset();
  std::string reason = "GPU kernels are not recorded: " + why + ". Training goes on.";
  sink_.message(true, reason);
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
  state_ = State::refused;
}

/// Starts recording; returns an empty string or the reason of a failure.
std::string RecordThread::begin() {
  if (!has_place_) return "this process records another device already";
  const CuptiApi::Found& found = CuptiApi::find();
  if (found.api == nullptr) return found.reason;
  GpuLanes lanes;
  if (std::string why = prepare_(*found.api, lanes); !why.empty()) return why;
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
  begin_period();
  return {};
}

void RecordThread::stop() {
  end_period();
  session_->end();
  // Records of earlier work may have arrived after the last flush.
  batch_.clear();
  session_->collect(clock_, names_, batch_);
  join_->add(batch_);
  emit(join_->take_all(instrumentation::monotonic_now_ns(), clock_.residual_ns()));
  join_.reset();
  session_.reset();
  state_ = State::off;
}

void RecordThread::collect(CuptiSession::Flush how) {
  session_->pair_clocks(clock_);
  const std::int64_t flushed_ns = instrumentation::monotonic_now_ns();
  batch_.clear();
  session_->collect(how, clock_, names_, batch_);
  join_->add(batch_);
  emit(join_->take(flushed_ns, clock_.residual_ns()));
  if (clock_.by_wall_clock() > 0 && !wall_clock_reported_) {
    wall_clock_reported_ = true;
    sink_.message(false,
                  "CUPTI gives times of the GPU's work by the wall clock: if that is set while "
                  "kernels are recorded, those then under way are misplaced or dropped");
  }
  emit({{flushed_ns,
         instrumentation::make<EventKind::gpu_clock>({.pairs = static_cast<std::uint32_t>(clock_.pairs()),
                                                      .residual_ns = clock_.residual_ns(),
                                                      .drift_ppb = clock_.drift_ppb()})}});
}

void RecordThread::emit(const std::vector<TimedEvent>& events) const {
  for (const auto& [at_ns, event] : events) sink_.emit_at(at_ns, event);
}

}  // namespace shardscope::profile::cuda
