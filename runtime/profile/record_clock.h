// The host's time of a time in CUPTI's records.
#pragma once

#include <cstdint>

#include "runtime/profile/clock_fit.h"

namespace shardscope::profile {

/// [Note: clocks of records]
/// CUPTI's own clock is the wall clock, which may be set while records are on their way. It can be given
/// another to read, ours, and its times then need no conversion. Some libraries give times of the GPU's work
/// by the wall clock all the same: where a context was there before the tool (before 13.3.3), or for the
/// first kernels after the clock was given again (pytorch/pytorch#190354, #192021). The two clocks are
/// decades apart, so every time shows of which of them it is. Where CUPTI did not take our clock, all of its
/// times are by the clock that it says it reads.
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
  /// What a converted time may be wrong by, so far as clocks of the host can tell: ClockFit::residual_ns of
  /// the clocks in use.
  [[nodiscard]] std::int64_t residual_ns() const noexcept;
  [[nodiscard]] std::int64_t drift_ppb() const noexcept { return cupti_.drift_ppb(); }
  [[nodiscard]] std::size_t pairs() const noexcept { return cupti_.pairs(); }
  /// Times that were by the wall clock, though CUPTI was given ours.
  [[nodiscard]] std::uint64_t by_wall_clock() const noexcept { return by_wall_clock_; }

 private:
  bool given_ = false;
  ClockFit cupti_, wall_;
  ClockPair now_wall_;  ///< the latest
  std::uint64_t by_wall_clock_ = 0;
};

}  // namespace shardscope::profile
