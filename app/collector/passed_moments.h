// Filters the moments that a collector asks the recorders of its nodes to keep: drops those passed on lately,
// as where two collectors have each other above, and limits their rate. Pure: the caller passes in the time
// of a monotonic clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "app/store/retention.h"

namespace shardscope::collector {

class PassedMoments {
 public:
  static constexpr std::size_t kMostASecond = 8;
  static constexpr std::int64_t kSame_ns = 1'000'000'000;  ///< two of a kind this close are one

  /// Whether `moment` is to be passed on; stores it if so.
  [[nodiscard]] bool take(const store::Moment& moment, double now_s) {
    for (const Passed& passed : recent_) {
      if (passed.kind == moment.kind && std::abs(passed.at_ns - moment.at_ns) < kSame_ns) return false;
    }
    if (now_s - second_s_ >= 1) {
      second_s_ = now_s;
      of_second_ = 0;
    }
    if (of_second_ == kMostASecond) return false;
    ++of_second_;
    recent_[next_++ % recent_.size()] = {moment.kind, moment.at_ns};
    return true;
  }

  /// True at most once in kWarnEvery_s: whether to warn that nodes could not be asked.
  [[nodiscard]] bool may_warn(double now_s) noexcept {
    if (warned_s_ && now_s - *warned_s_ < kWarnEvery_s) return false;
    warned_s_ = now_s;
    return true;
  }

 private:
  static constexpr double kWarnEvery_s = 15;
  struct Passed {
    std::string kind;
    std::int64_t at_ns = 0;
  };
  std::array<Passed, 64> recent_;
  std::size_t next_ = 0, of_second_ = 0;
  double second_s_ = -1;
  std::optional<double> warned_s_;
};

}  // namespace shardscope::collector
