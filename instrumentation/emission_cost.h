// Cost of profiling on a rank, measured and reported by the rank at the end of its run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::instrumentation {

/// Prefix of emission_cost_text().
inline constexpr const char* kEmissionCostPrefix = "cost of profiling: ";
/// Prefix of stream_times_text().
inline constexpr const char* kStreamTimesPrefix = "times of the GPU's streams are right to ";
/// Whether a message reports a figure about the profiling itself; reports show such messages.
[[nodiscard]] bool is_about_profiling(std::string_view message) noexcept;

/// Nanoseconds of one push into a ring with its timestamp, on this machine: the shortest of several bursts
/// into a private ring, on the calling thread, within about a tenth of a millisecond. Does not wait for other
/// threads.
[[nodiscard]] double calibrated_event_ns();

struct EmissionCost {
  std::uint64_t events = 0;  ///< emitted by all threads of the rank
  double event_ns = 0;       ///< from calibrated_event_ns()
  std::int64_t elapsed_ns = 0;
  /// CPU time of the threads that drain, sort and encode, answer the control channel, and write to the
  /// network; nullopt where the kernel does not report it.
  std::optional<std::int64_t> publishing_cpu_ns;
};
/// "cost of profiling: 152590 events x 12.4 ns = 1.9 ms of the emitting threads, 0.006 % of 31.2 s; ...".
[[nodiscard]] std::string emission_cost_text(const EmissionCost& cost);
/// "times of the GPU's streams are right to 4.2 µs on the rank's clock", of Device::stamp_residual_ns().
[[nodiscard]] std::string stream_times_text(std::int64_t residual_ns);

// Names of the publishing threads, used to find their CPU time in /proc/self/task.
inline constexpr const char* kPublishThread = "observe-publish";
inline constexpr const char* kControlThread = "observe-control";
inline constexpr int kIoThreadPrefix = 5711;  ///< of ZeroMQ's threads: "5711/ZMQbg/IO/0"

/// Whether a thread with this name publishes.
[[nodiscard]] bool is_publishing_thread(std::string_view name) noexcept;
/// CPU time of this process's publishing threads so far; nullopt where /proc does not have it.
[[nodiscard]] std::optional<std::int64_t> publishing_cpu_ns();

}  // namespace shardscope::instrumentation
