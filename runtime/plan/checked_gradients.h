// The parameter that a non-finite gradient belongs to. A rank checks its owned gradients as one range of
// elements; only if that check fails are the elements attributed to parameters.
//
// [Note: the first gradient that is not finite]
// First in the order in which backward completed gradients in the step: values computed from an infinite or
// NaN gradient are not finite either, so the earliest is the likeliest cause of the others. A parameter that
// several modules use is complete with the last of them. Each rank sees its own partition only; the first of
// all ranks is the one at the lowest position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/partition.h"

namespace shardscope::plan {

/// Elements of one parameter, without padding, in the range that a rank checks.
struct CheckedGradient {
  ParamId param{};
  std::uint32_t position = 0;  ///< of the parameter in the order of backward, from 0
  Range owned;                 ///< of the rank's owned range; never empty
};

/// Parameter slices in elements [checked) of the owned range of `rank`, in the order of `backward`: the
/// trained parameters in the order in which their gradients were completed, without those that had none. All
/// slices of one parameter are adjacent.
[[nodiscard]] std::vector<CheckedGradient> checked_gradients(const Ownership& ownership, std::uint32_t rank,
                                                             Range checked,
                                                             const std::vector<ParamId>& backward);

/// Counts the non-finite gradient elements of one rank. See [Note: the first gradient that is not finite].
class NotFiniteGradients {
 public:
  struct First {
    ParamId param{};
    std::uint32_t position = 0;
    std::int64_t infinite = 0, nan = 0;  ///< elements of the parameter in the range that the rank checks
  };

  /// Call for each of checked_gradients(), in order.
  void add(const CheckedGradient& gradient, std::int64_t infinite, std::int64_t nan);
  [[nodiscard]] const std::optional<First>& first() const noexcept { return first_; }
  /// Number of parameters after the first with non-finite elements.
  [[nodiscard]] std::int64_t other_params() const noexcept { return other_params_; }

 private:
  std::optional<First> first_;
  std::optional<ParamId> last_;  ///< latest parameter with non-finite elements
  std::int64_t other_params_ = 0;
};

}  // namespace shardscope::plan
