// Why a rank entered collectives last: the class of its own time that exceeds that of the other ranks. One
// definition for findings, summary, report and window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/gpu_state.h"

namespace shardscope::analysis {

struct RankStep;
struct Summary;

/// A rank's own time by class, in milliseconds per step: without waiting for other ranks, and without
/// communication.
struct OwnParts {
  std::uint32_t rank = 0;
  double compute = 0, copy = 0, idle = 0;
  double data = 0;       ///< waits for a micro-batch: included in the others
  double processor = 0;  ///< its threads waited for a processor, summed over threads: included in the others
  std::uint64_t retries = 0;  ///< of its caching allocator, over all steps
  GpuState gpu{};             ///< over all steps
};

struct WhyLate {
  enum class Part : std::uint8_t { compute, copy, idle };
  Part part{};
  bool for_data =
      false;  ///< its wait for a micro-batch exceeds the median of the others by over half of excess_ms()
  double own_ms = 0;    ///< per step
  double usual_ms = 0;  ///< median of the other ranks
  double data_ms = 0;   ///< per step, waiting for data
  /// Its threads' wait for a processor exceeds the median of the others by over a third of excess_ms().
  bool for_processor = false;
  double processor_ms = 0, usual_processor_ms = 0;  ///< per step
  std::uint64_t retries = 0;  ///< its allocator freed its cache, waiting for the device each time
  /// Its GPU's clock is so much lower than the median of the others that computation in proportion to it
  /// explains over half of excess_ms().
  bool for_clock = false;
  double mhz = 0, usual_mhz = 0;                ///< of the multiprocessors
  bool power_limited = false, too_hot = false;  ///< why, in over half of the samples
  [[nodiscard]] double excess_ms() const noexcept { return own_ms - usual_ms; }
};
/// "computed", "copied", "waited for data", "did nothing".
[[nodiscard]] const char* verb_of(const WhyLate& why) noexcept;
/// "it computed 14.0 ms of a step, the others 10.0 ms", with the causes.
[[nodiscard]] std::string text_of(const WhyLate& why);
/// Causes of its own time: sentences, each after a space; empty if none is known.
[[nodiscard]] std::string causes_of(const WhyLate& why);

/// The class in which `rank` exceeds the median of the other ranks the most; nullopt if it exceeds it in
/// none, or is the only rank.
[[nodiscard]] std::optional<WhyLate> why_late(const std::vector<OwnParts>& ranks, std::uint32_t rank);
/// From the means of the measured steps. nullopt if the excess is less than half of the time for which each
/// other rank waited for it: ranks take turns in being last.
[[nodiscard]] std::optional<WhyLate> why_late(const Summary& summary, std::uint32_t rank);

/// Counts how often a rank's caching allocator freed its cache in the steps that count; the allocator itself
/// counts since its start.
class RetryCount {
 public:
  /// Call in order of time.
  void add(const RankStep& step, bool counts);
  /// nullopt if it was not recorded.
  [[nodiscard]] std::optional<std::uint64_t> count() const noexcept { return count_; }

 private:
  std::optional<std::uint32_t> before_;
  std::optional<std::uint64_t> count_;
};

}  // namespace shardscope::analysis
