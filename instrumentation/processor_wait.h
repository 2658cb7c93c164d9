// How long the threads of this process could have run and had no processor: what other processes on the host
// take from a rank. Read from /proc by the publishing thread, so that those that train pay nothing for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace shardscope::instrumentation {

class ProcessorWait {
 public:
  /// `tasks`: the folder with a folder for each thread.
  explicit ProcessorWait(std::string tasks = "/proc/self/task") : tasks_(std::move(tasks)) {}

  struct Sample {
    std::int64_t waited_ns = 0;  ///< summed over threads, without those that publish
    std::uint32_t switches = 0;  ///< a thread lost its processor to another; of the whole process
    std::int64_t over_ns = 0;    ///< since the call before
  };
  /// Since the call before; nullopt of the first, and where the kernel does not say it. A thread that has
  /// ended since is not counted. Costs some 10 us a thread: not after every step.
  [[nodiscard]] std::optional<Sample> take(std::int64_t now_ns);

 private:
  struct Thread {
    std::int64_t waited_ns = 0;
    bool publishes = false;
    bool seen = false;  ///< in the present call
  };
  std::string tasks_;
  std::unordered_map<std::string, Thread> threads_;  ///< by id
  std::int64_t switches_ = 0;
  std::optional<std::int64_t> before_ns_;
};

}  // namespace shardscope::instrumentation
