// The offset of one rank's clock against the collector's, from round trips.
#pragma once

#include <cstdint>
#include <deque>

namespace shardscope::collector {

/// A round trip bounds the offset: it is known to half the trip's duration, whatever the two directions
/// took (Cristian 1989). So the shortest trips count: of every few seconds the shortest is kept, and with
/// several of them a line (offset and drift) is fitted through those that bound it best.
class ClockEstimator {
 public:
  /// Both read the very same clock: the offset is exactly 0.
  void same_clock() { same_ = true; }
  /// Collector sent at `sent`, rank received at `rank_received` and answered at `rank_sent`, collector
  /// received at `received`. Nonsense (negative trips) is ignored.
  void add(std::int64_t sent, std::int64_t rank_received, std::int64_t rank_sent, std::int64_t received);
  [[nodiscard]] bool known() const noexcept { return same_ || !windows_.empty(); }
  /// To be added to a rank's time near `rank_ns`.
  [[nodiscard]] std::int64_t offset_ns(std::int64_t rank_ns) const;
  /// Bound on the error of that sum.
  [[nodiscard]] std::int64_t residual_ns(std::int64_t rank_ns) const;
  /// Nanoseconds the rank's clock loses against the collector's per second; 0 until it can be told.
  [[nodiscard]] double drift_ns_per_s() const noexcept { return slope_ * 1e9; }

 private:
  struct Sample {
    std::int64_t at = 0;  ///< rank clock, middle of the trip
    std::int64_t offset = 0;
    std::int64_t bound = 0;  ///< half the trip
  };
  void fit();

  bool same_ = false;
  std::deque<Sample> windows_;     ///< the best of each window, oldest first
  std::int64_t window_begin_ = 0;  ///< of the last one
  // Line: offset = base_offset_ + slope_ * (at - base_at_).
  std::int64_t base_at_ = 0, base_offset_ = 0, bound_ = 0;
  double slope_ = 0;
};

}  // namespace shardscope::collector
