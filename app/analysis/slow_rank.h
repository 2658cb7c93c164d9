// When a rank computes longer than the others: one measure for findings, the timeline and the overview.
#pragma once

#include <optional>
#include <vector>

namespace shardscope::analysis {

/// A rank is slow where it computes at least so many times as long as the median of the others.
inline constexpr double kSlowRank = 1.1;
[[nodiscard]] constexpr bool is_slow(double own, double others) noexcept {
  return others > 0 && own >= kSlowRank * others;
}

/// Of one step: whether it counts among those in which the rank was behind. Less than a slow rank's, since
/// one that is slow on the whole is not so in every step.
inline constexpr double kLongerInStep = 1.05;
[[nodiscard]] constexpr bool computes_longer(double own, double others) noexcept {
  return others > 0 && own > kLongerInStep * others;
}

/// Medians of all ranks but one: with few of them the slow one is no part of what it is compared with.
class OthersMedian {
 public:
  OthersMedian() = default;
  explicit OthersMedian(std::vector<double> values);
  /// Of the others than one whose value is `own`; nothing where there are none.
  [[nodiscard]] std::optional<double> without(double own) const noexcept;

 private:
  std::vector<double> sorted_;
};

}  // namespace shardscope::analysis
