// Which parameter a gradient that is not finite belongs to. A rank checks its owned gradients as one run of
// elements; only where that found something is it asked which parameter's they are.
//
// [Note: the first gradient that is not finite]
// First is in the order in which backward completed gradients in the step: what is computed from a gradient
// that is infinite or NaN is so too, so the earliest is the likeliest cause, and the others may be its
// consequences. A parameter that several modules use is complete with the last of them. Each rank knows of
// its own partition; the first of all ranks is the one at the least position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/partition.h"

namespace shardscope::plan {

/// Elements of one parameter, without padding, in what a rank checks.
struct CheckedGradient {
  ParamId param{};
  std::uint32_t position = 0;  ///< of the parameter in the order of backward, from 0
  Range owned;                 ///< of the rank's owned range; never empty
};

/// What lies in elements [checked) of the owned range of `rank`. In the order of `backward`, the trained
/// parameters as their gradients were completed; one that is not in it had no gradient. A parameter that
/// lies in several places has them in a row.
[[nodiscard]] std::vector<CheckedGradient> checked_gradients(const Ownership& ownership, std::uint32_t rank,
                                                             Range checked,
                                                             const std::vector<ParamId>& backward);

/// What of one rank's gradients is not finite. See [Note: the first gradient that is not finite].
class NotFiniteGradients {
 public:
  struct First {
    ParamId param{};
    std::uint32_t position = 0;
    std::int64_t infinite = 0, nan = 0;  ///< elements of the parameter in what the rank checks
  };

  /// To be called for each of checked_gradients(), in their order.
  void add(const CheckedGradient& gradient, std::int64_t infinite, std::int64_t nan);
  [[nodiscard]] const std::optional<First>& first() const noexcept { return first_; }
  /// Parameters after the first of which elements are not finite either.
  [[nodiscard]] std::int64_t other_params() const noexcept { return other_params_; }

 private:
  std::optional<First> first_;
  std::optional<ParamId> last_;  ///< that was not finite
  std::int64_t other_params_ = 0;
};

}  // namespace shardscope::plan
