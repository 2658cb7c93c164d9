// Converts times of CUPTI's records to the host's clock.
#pragma once

#include <cstdint>

#include "runtime/profile/clock_fit.h"

namespace shardscope::profile {

/// [Note: clocks of records]
/// CUPTI's own clock is the wall clock, which may be set during recording. A callback can replace it by ours,
/// and its times then need no conversion. Some versions still return wall clock times for GPU work: if a
/// context existed before the tool (before 13.3.3), or for the first kernels after the callback was
/// registered again (pytorch/pytorch#190354, #192021). The two clocks are decades apart, so every time shows
/// which of them it is. If CUPTI did not accept our clock, all of its times are by the clock of
/// cuptiGetTimestamp.
class RecordClock {
 public:
  RecordClock() = default;
  /// `given`: CUPTI was given the host's clock.
  explicit RecordClock(bool given) : given_(given) {}
  /// CUPTI's clock (cuptiGetTimestamp) and the wall clock, each with the host's, about now.
  void add(const ClockPair& cupti, const ClockPair& wall);
  /// Without a pair there is no conversion.
  [[nodiscard]] bool ready() const noexcept { return cupti_.ready() && wall_.ready(); }
  [[nodiscard]] std::int64_t to_host(std::uint64_t record_ns) noexcept;
  /// Error bound of a converted time: ClockFit::residual_ns of the clocks in use.
  [[nodiscard]] std::int64_t residual_ns() const noexcept;
  [[nodiscard]] std::int64_t drift_ppb() const noexcept { return cupti_.drift_ppb(); }
  [[nodiscard]] std::size_t pairs() const noexcept { return cupti_.pairs(); }
  /// Number of wall clock times although CUPTI was given our clock.
  [[nodiscard]] std::uint64_t by_wall_clock() const noexcept { return by_wall_clock_; }

 private:
  bool given_ = false;
  ClockFit cupti_, wall_;
  ClockPair now_wall_;  ///< the latest
  std::uint64_t by_wall_clock_ = 0;
};

}  // namespace shardscope::profile
