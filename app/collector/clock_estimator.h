// Estimates the offset of one clock against the collector's, with a strict error bound.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "app/collector/clock_band.h"

namespace shardscope::collector {

/// A message sent at a time of one clock and received at a time of the other bounds the offset between them,
/// whatever its latency: it was not received before it was sent. Round trips bound it from both sides
/// (Cristian 1989), and so do collectives (collective_clocks.h). The tightest reading of each window of a few
/// seconds is stored, separately for each side; every line between them is a possible offset and drift
/// (ClockBand). The estimate is the middle of the offsets possible with the usual drift of crystals, the
/// residual its difference to the furthest possible offset.
class ClockEstimator {
 public:
  /// Crystals are accurate to 100 parts per million, and mostly better. Seconds per second.
  static constexpr double kUsualDrift = 1e-4;
  struct Bounds {
    std::int64_t low_ns = 0, high_ns = 0;
  };

  /// Both processes read the same clock: the offset is exactly 0.
  void same_clock() { same_ = true; }
  [[nodiscard]] bool is_same_clock() const noexcept { return same_; }
  /// Collector sent at `sent`, rank received at `rank_received` and answered at `rank_sent`, collector
  /// received at `received`. Impossible readings (negative trips) are ignored. Earlier readings that
  /// contradict this one are discarded: a clock was set.
  void add(std::int64_t sent, std::int64_t rank_received, std::int64_t rank_sent, std::int64_t received);
  /// Bounds of the offset from another source than a round trip: at least `low_ns` at the rank's `low_at`, at
  /// most `high_ns` at its `high_at`. False, and ignored, where no round trip was added yet or the present
  /// bounds contradict it.
  bool refine(std::int64_t low_at, std::int64_t low_ns, std::int64_t high_at, std::int64_t high_ns);
  [[nodiscard]] bool known() const noexcept { return same_ || band_; }
  /// Offset to add to a rank's time near `rank_ns`.
  [[nodiscard]] std::int64_t offset_ns(std::int64_t rank_ns) const;
  /// Bound on the error of that sum.
  [[nodiscard]] std::int64_t residual_ns(std::int64_t rank_ns) const;
  /// Bounds of the offset near `rank_ns`. Only where known().
  [[nodiscard]] Bounds bounds(std::int64_t rank_ns) const;
  /// Nanoseconds the rank's clock loses against the collector's per second; 0 until it is known.
  [[nodiscard]] double drift_ns_per_s() const;

 private:
  /// One-sided bound: the offset at `at` does not exceed (or fall below) `offset`.
  struct Reading {
    std::int64_t at = 0, offset = 0;
  };
  struct Window {
    std::int64_t begin = 0;
    Reading low, high;
  };
  [[nodiscard]] bool keep(Reading low, Reading high);
  void fit();
  void fit_older();

  bool same_ = false;
  std::deque<Window> windows_;      ///< oldest first; the first reading of each is a round trip
  std::optional<ClockBand> older_;  ///< lines that agree with all windows but the newest
  std::optional<ClockBand> band_;
  std::optional<ClockBand> likely_;  ///< the lines of `band_` with a usual drift, or all where there are none
};

}  // namespace shardscope::collector
