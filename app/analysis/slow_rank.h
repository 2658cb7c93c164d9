// When a rank counts as slow: one definition for findings, timeline and overview.
#pragma once

#include <optional>
#include <vector>

namespace shardscope::analysis {

/// A rank is slow if it computes at least this many times as long as the median of the other ranks.
inline constexpr double kSlowRank = 1.1;
[[nodiscard]] constexpr bool is_slow(double own, double others) noexcept {
  return others > 0 && own >= kSlowRank * others;
}

/// For one step: whether the rank was behind in it. Below kSlowRank, since a rank that is slow overall is not
/// slow in every step.
inline constexpr double kLongerInStep = 1.05;
[[nodiscard]] constexpr bool computes_longer(double own, double others) noexcept {
  return others > 0 && own > kLongerInStep * others;
}

/// Medians over all ranks but one: among few ranks a slow one would distort the median it is compared with.
class OthersMedian {
 public:
  OthersMedian() = default;
  explicit OthersMedian(std::vector<double> values);
  /// The median without one value equal to `own`; nullopt if there are no others.
  [[nodiscard]] std::optional<double> without(double own) const noexcept;

 private:
  std::vector<double> sorted_;
};

}  // namespace shardscope::analysis
