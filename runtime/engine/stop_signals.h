// SIGTERM, SIGINT and SIGUSR1 (which mpirun forwards without killing afterwards) as a request to stop after
// the current step. A dedicated thread receives them, so that on_stop (which opens a gate at which the run is
// held) is not limited to async-signal-safe functions.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace shardscope::engine {

class StopSignals {
 public:
  /// Blocks these signals in the calling thread and every thread it starts afterwards: create this before any
  /// other thread. `on_stop` runs on the signal thread, once.
  explicit StopSignals(std::function<void()> on_stop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal received; 0: none. A second one ends the process at once.
  [[nodiscard]] int received() const noexcept { return received_.load(); }

 private:
  void wait_for_signals();

  std::function<void()> on_stop_;
  std::atomic<int> received_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace shardscope::engine
