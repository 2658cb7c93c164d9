// Why a rank entered collectives last: the class of its own time that exceeds that of the other ranks. One
// definition for findings, summary, report and window.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/gpu_state.h"

namespace shardscope::analysis {

class Digest;
struct GroupTime;
struct RankStep;
struct Summary;

/// Exposed time of a rank in collectives of one group that has not all ranks, in milliseconds per step.
struct OwnGroup {
  std::uint64_t group = 0;           ///< GroupExposure::group
  std::vector<std::uint32_t> ranks;  ///< its members, ascending
  double waiting = 0, moving = 0;
  std::uint32_t late = UINT32_MAX;  ///< for which it waited most there; UINT32_MAX: for none
  double late_ms = 0;
  [[nodiscard]] double total() const noexcept { return waiting + moving; }
};

/// A rank's own time by class, in milliseconds per step: without waiting for other ranks, and without
/// communication.
struct OwnParts {
  std::uint32_t rank = 0;
  double compute = 0, copy = 0, idle = 0;
  double data = 0;       ///< waits for a micro-batch: included in the others
  double processor = 0;  ///< its threads waited for a processor, summed over threads: included in the others
  std::uint64_t retries = 0;  ///< of its caching allocator, over all steps
  GpuState gpu{};             ///< over all steps
  std::vector<OwnGroup> groups{};
};

struct WhyLate {
  enum class Part : std::uint8_t { compute, copy, idle, group };
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
  /// Of Part::group: the other group in whose collectives it was for own_ms.
  OwnGroup group{};
  [[nodiscard]] double excess_ms() const noexcept { return own_ms - usual_ms; }
};
/// "computed", "copied", "waited for data", "did nothing", "was in collectives of another group".
[[nodiscard]] const char* verb_of(const WhyLate& why) noexcept;
/// "it computed 14.0 ms of a step, the others 10.0 ms", with the causes.
[[nodiscard]] std::string text_of(const WhyLate& why);
/// Causes of its own time: sentences, each after a space; empty if none is known.
[[nodiscard]] std::string causes_of(const WhyLate& why);

/// The class in which `rank` exceeds the median of the other ranks the most; nullopt if it exceeds it in
/// none, or is the only rank. Compared are the ranks that waited for it; all if `waiters` is empty.
[[nodiscard]] std::optional<WhyLate> why_late(const std::vector<OwnParts>& ranks, std::uint32_t rank,
                                              const std::vector<std::uint32_t>& waiters = {});
/// The ranks that waited for a rank for at least a tenth as long as the one that waited longest for it.
[[nodiscard]] std::vector<std::uint32_t> waiters_of(
    const std::vector<std::pair<std::uint32_t, double>>& waits);
/// From the means of the measured steps. nullopt if the excess is less than half of the time for which each
/// other rank waited for it: ranks take turns in being last.
[[nodiscard]] std::optional<WhyLate> why_late(const Summary& summary, std::uint32_t rank);

/// Per step.
[[nodiscard]] std::vector<OwnGroup> own_groups(const std::vector<GroupTime>& groups, double steps);

/// Sums a rank's exposed time by group over steps.
class GroupTimes {
 public:
  void add(const RankStep& step);
  [[nodiscard]] std::vector<GroupTime> all(const Digest& digest) const;

 private:
  struct Sums {
    std::int64_t waiting_ns = 0, moving_ns = 0;
    std::map<std::uint32_t, std::int64_t> late;  ///< by rank waited for
  };
  std::map<std::uint64_t, Sums> groups_;
};

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
