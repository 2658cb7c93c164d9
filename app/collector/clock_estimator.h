// The offset of one clock against the collector's, from what is known for certain.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "app/collector/clock_band.h"

namespace shardscope::collector {

/// A message that was sent at one time of one clock and received at another of the other bounds the offset
/// between them, whatever the way took: it was not received before it was sent. Round trips do so from both
/// sides (Cristian 1989), and so do collectives (collective_clocks.h). Of every few seconds the tightest
/// reading is kept, separately for each side, and every line through them is a possible offset and drift
/// (ClockBand). The estimate is the middle of what is possible with the drift that crystals have, the
/// residual its difference to the furthest offset that is possible at all.
class ClockEstimator {
 public:
  /// Crystals are right to 100 parts in a million, and mostly better: seconds per second.
  static constexpr double kUsualDrift = 1e-4;
  struct Bounds {
    std::int64_t low_ns = 0, high_ns = 0;
  };

  /// Both read the very same clock: the offset is exactly 0.
  void same_clock() { same_ = true; }
  [[nodiscard]] bool is_same_clock() const noexcept { return same_; }
  /// Collector sent at `sent`, rank received at `rank_received` and answered at `rank_sent`, collector
  /// received at `received`. Nonsense (negative trips) is ignored. What contradicts it is forgotten: a clock
  /// was set.
  void add(std::int64_t sent, std::int64_t rank_received, std::int64_t rank_sent, std::int64_t received);
  /// Bounds from another source than a round trip: at least `low_ns` at the rank's `low_at`, at most
  /// `high_ns` at its `high_at`. False, and ignored, where no round trip has been seen or what is known
  /// contradicts it.
  bool refine(std::int64_t low_at, std::int64_t low_ns, std::int64_t high_at, std::int64_t high_ns);
  [[nodiscard]] bool known() const noexcept { return same_ || band_; }
  /// To be added to a rank's time near `rank_ns`.
  [[nodiscard]] std::int64_t offset_ns(std::int64_t rank_ns) const;
  /// Bound on the error of that sum.
  [[nodiscard]] std::int64_t residual_ns(std::int64_t rank_ns) const;
  /// Between these the offset is near `rank_ns`. Only where known().
  [[nodiscard]] Bounds bounds(std::int64_t rank_ns) const;
  /// Nanoseconds the rank's clock loses against the collector's per second; 0 until it is known.
  [[nodiscard]] double drift_ns_per_s() const;

 private:
  /// The offset is not beyond `offset` at `at`.
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
  std::optional<ClockBand> older_;  ///< what all but the newest window leave
  std::optional<ClockBand> band_;
  std::optional<ClockBand> likely_;  ///< of these the ones with a usual drift, or all
};

}  // namespace shardscope::collector
