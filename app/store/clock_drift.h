// Drift of a rank's clock against the collector's, from the clock offsets in its chunks.
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::store {

/// Growth of the clock's offset in nanoseconds per second (parts per billion): above 0 the rank's clock is
/// slow. The true mean over the measured interval is within `bound_ppb`.
struct ClockDrift {
  double ppb = 0;
  double bound_ppb = 0;
  friend bool operator==(const ClockDrift&, const ClockDrift&) = default;
};

/// Two offsets, each with a residual as error bound, give the mean drift between them, with the sum of the
/// residuals over the time between as bound; the pair with the smallest bound so far is kept.
class ClockDriftEstimate {
 public:
  /// `at_ns`: collector clock, about when `offset_ns` was right to within `residual_ns`.
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
