#include "app/store/clock_residuals.h"

#include <algorithm>

namespace shardscope::store {

void ClockResiduals::join(ResidualInterval& to, const ResidualInterval& next) noexcept {
  to.begin_ns = std::min(to.begin_ns, next.begin_ns);
  to.end_ns = std::max(to.end_ns, next.end_ns);
  to.residual_ns = std::max(to.residual_ns, next.residual_ns);
}

void ClockResiduals::add(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t residual_ns) {
  const ResidualInterval next{begin_ns, std::max(begin_ns, end_ns), residual_ns};
  if (!intervals_.empty() && in_last_ < each_) {
    join(intervals_.back(), next);
    ++in_last_;
    return;
  }
  if (intervals_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      intervals_[i] = intervals_[2 * i];
      join(intervals_[i], intervals_[2 * i + 1]);
    }
    intervals_.resize(kMost / 2);
    each_ *= 2;
  }
  intervals_.push_back(next);
  in_last_ = 1;
}

std::optional<std::int64_t> ClockResiduals::largest(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (intervals_.empty()) return std::nullopt;
  std::int64_t out = 0;
  bool begin_held = false, end_held = false;
  const ResidualInterval *before = nullptr, *after = nullptr;
  for (const ResidualInterval& interval : intervals_) {
    if (interval.end_ns < begin_ns) {
      if (before == nullptr || interval.end_ns >= before->end_ns) before = &interval;
    } else if (interval.begin_ns > end_ns) {
      if (after == nullptr || interval.begin_ns < after->begin_ns) after = &interval;
    } else {
      out = std::max(out, interval.residual_ns);
      begin_held = begin_held || interval.begin_ns <= begin_ns;
      end_held = end_held || interval.end_ns >= end_ns;
    }
  }
  if (!begin_held && before != nullptr) out = std::max(out, before->residual_ns);
  if (!end_held && after != nullptr) out = std::max(out, after->residual_ns);
  return out;
}

}  // namespace shardscope::store
