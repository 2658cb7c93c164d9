// Drift of a rank's clock against the collector's, from the clock offsets in its chunks.
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::store {

/// What the clock's offset grows by, in nanoseconds per second (parts per billion): above 0 the rank's clock
/// is slow. The truth, as a mean over the stretch looked at, is within `bound_ppb`.
struct ClockDrift {
  double ppb = 0;
  double bound_ppb = 0;
  friend bool operator==(const ClockDrift&, const ClockDrift&) = default;
};

/// Two offsets that are each known to within a residual give the mean drift between them to within the sum of
/// both over the time between; the pair with the smallest bound so far is kept.
class ClockDriftEstimate {
 public:
  /// `at_ns` on the collector's clock, about when `offset_ns` was right to within `residual_ns`.
  void add(std::int64_t at_ns, std::int64_t offset_ns, std::int64_t residual_ns) noexcept;
  /// nullopt before a second has passed.
  [[nodiscard]] const std::optional<ClockDrift>& value() const noexcept { return best_; }

 private:
  struct Sample {
    std::int64_t at_ns = 0, offset_ns = 0, residual_ns = 0;
  };
  std::optional<Sample> anchor_;
  std::optional<ClockDrift> best_;
};

}  // namespace shardscope::store
