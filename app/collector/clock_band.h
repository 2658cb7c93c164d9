// Bounds of the offset between two clocks: the set of all lines that no reading contradicts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace shardscope::collector {

/// Two clocks differ by a line, offset and drift, as long as neither wanders. A reading of the form "at this
/// time the offset is at least (or at most) this" is a half-plane of such lines, and several make a convex
/// polygon; at any time the smallest and the largest offset are those of two of its corners. So the bound
/// is strict, which that of a fitted line is not, and a reading that no line agrees with shows that a
/// clock was set or slewed (Moon, Skelly and Towsley, "Estimation and removal of clock skew", 1999,
/// section IV, for one-way delays).
class ClockBand {
 public:
  struct Range {
    double low = 0, high = 0;
  };
  /// Every line whose drift is at most `steepest` (seconds per second) in either direction. Times and offsets
  /// are exact to less than a nanosecond within 2^50 ns (13 days) of these.
  ClockBand(std::int64_t near_at_ns, std::int64_t near_offset_ns, double steepest);

  /// Leaves the lines with at least (at most) this offset at this time. False: none are left, and the band
  /// stays as it was.
  bool at_least(std::int64_t at_ns, std::int64_t offset_ns);
  bool at_most(std::int64_t at_ns, std::int64_t offset_ns);
  /// Leaves the lines whose drift is at most `steepest` in either direction. False: as for at_least().
  bool drift_within(double steepest);

  /// Range of the offset at this time, in nanoseconds relative to base_ns().
  [[nodiscard]] Range at(std::int64_t at_ns) const;
  [[nodiscard]] std::int64_t base_ns() const noexcept { return offset_; }
  /// Range of the drift, in seconds per second.
  [[nodiscard]] Range drift() const;

 private:
  /// A line: offset - offset_ = at_base + drift * (at - at_).
  struct Line {
    double at_base = 0, drift = 0;
  };
  /// Leaves the lines for which `inside_by` is not negative; it must be linear in a line's offset and drift.
  template <typename InsideBy>
  bool clip(InsideBy inside_by);

  std::int64_t at_, offset_;
  std::vector<Line> corners_, clipped_;
};

}  // namespace shardscope::collector
