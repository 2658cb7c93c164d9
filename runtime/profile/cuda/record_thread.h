// The thread that fetches CUPTI's records while the level is `kernels`, and converts them to events.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "instrumentation/event.h"
#include "runtime/profile/cuda/cupti_session.h"
#include "runtime/profile/gpu_lanes.h"
#include "runtime/profile/gpu_recorder.h"
#include "runtime/profile/record_join.h"

namespace shardscope::profile::cuda {

/// Receives the events and decides whether to record. Called from the recorder's thread.
struct RecordSink {
  std::function<bool()> wanted;
  std::function<void(std::int64_t at_ns, const instrumentation::Event&)> emit_at;
  std::function<void(bool warning, const std::string&)> message;
  NameId name_id;
};

class RecordThread final : public GpuRecorder {
 public:
  /// Called before each period of recording, on the recorder's thread: makes the device current if needed and
  /// sets the lanes of known streams. Returns an empty string, or why there can be no recording.
  using Prepare = std::function<std::string(const CuptiApi&, GpuLanes&)>;

  /// Only one per process can use CUPTI; another one is refused.
  RecordThread(RecordSink sink, Prepare prepare);
  ~RecordThread() override;

  [[nodiscard]] State state() const noexcept override { return state_.load(); }
  [[nodiscard]] std::string reason() const override;
  void flush() override;
  /// Whether this is the process's one user of CUPTI.
  [[nodiscard]] bool has_place() const noexcept { return has_place_; }
  /// Releases CUPTI for another profiler of this process (`left`), or takes it again. Waits until done.
  void leave(bool left);

 private:
  void run();
  void round(bool ends);
  void start();
  void stop();
  void collect(CuptiSession::Flush how);
  void give_up(const std::string& why);
  [[nodiscard]] std::string begin();
  void emit(const std::vector<TimedEvent>& events) const;

  const RecordSink sink_;
  const Prepare prepare_;
  const bool has_place_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool ends_ = false;
  bool left_ = false;                       ///< to another profiler
  std::uint64_t asked_ = 0, answered_ = 0;  ///< calls of flush()
  std::string reason_;
  std::atomic<State> state_{State::off};

  // The thread's own.
  Names names_;
  std::optional<CuptiSession> session_;
  std::optional<RecordJoin> join_;
  RecordClock clock_;
  bool wall_clock_reported_ = false;
  RecordBatch batch_;
  std::thread thread_;
};

}  // namespace shardscope::profile::cuda
