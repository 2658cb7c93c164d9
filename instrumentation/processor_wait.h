// Processor time of this process, and how long its threads were runnable without a processor: time that other
// processes on the host take from a rank. The publishing thread reads it from /proc, so that training threads
// pay nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace shardscope::instrumentation {

class ProcessorWait {
 public:
  /// `tasks`: the folder with one subfolder per thread.
  explicit ProcessorWait(std::string tasks = "/proc/self/task") : tasks_(std::move(tasks)) {}

  struct Sample {
    std::int64_t waited_ns = 0;  ///< summed over threads, except publishing ones
    std::uint32_t used_ms = 0;   ///< processor time, summed over threads, except publishing ones
    std::uint32_t switches = 0;  ///< preemptions of threads, of the whole process
    std::int64_t over_ns = 0;    ///< length of the interval since the previous call
  };
  /// Since the previous call; nullopt at the first call, and where the kernel does not report it. A thread
  /// that has ended since is not counted. Costs about 10 us per thread: not after every step.
  [[nodiscard]] std::optional<Sample> take(std::int64_t now_ns);

 private:
  struct Thread {
    std::int64_t ran_ns = 0;
    std::int64_t waited_ns = 0;
    bool publishes = false;
    bool seen = false;  ///< in the current call
  };
  std::string tasks_;
  std::unordered_map<std::string, Thread> threads_;  ///< by id
  std::int64_t used_ns_ = 0;                         ///< not reported yet: less than a millisecond
  std::int64_t switches_ = 0;
  std::optional<std::int64_t> before_ns_;
};

}  // namespace shardscope::instrumentation
