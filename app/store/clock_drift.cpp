#include "app/store/clock_drift.h"

#include <cmath>

namespace shardscope::store {
namespace {
constexpr double kShortest_s = 1;
/// Ten times the drift of crystals: beyond, the clock was set, or its offset was unknown before.
constexpr double kBelievablePpb = 1e6;
}  // namespace

void ClockDriftEstimate::add(std::int64_t at_ns, std::int64_t offset_ns, std::int64_t residual_ns) noexcept {
  const Sample sample{at_ns, offset_ns, residual_ns};
  if (!anchor_) {
    anchor_ = sample;
    return;
  }
  // As doubles: a damaged run may have any values.
  const double seconds = (static_cast<double>(at_ns) - static_cast<double>(anchor_->at_ns)) * 1e-9;
  const double change = static_cast<double>(offset_ns) - static_cast<double>(anchor_->offset_ns);
  const double bound = static_cast<double>(residual_ns) + static_cast<double>(anchor_->residual_ns);
  if (std::abs(change) > bound + kBelievablePpb * std::abs(seconds)) {
    anchor_ = sample;
    best_.reset();
    return;
  }
  if (seconds >= kShortest_s) {
    const ClockDrift drift{change / seconds, bound / seconds};
    if (!best_ || drift.bound_ppb <= best_->bound_ppb) best_ = drift;
  }
  // The first offsets of a run rest on few round trips. A later, better one replaces them soon.
  if (residual_ns < anchor_->residual_ns / 2) anchor_ = sample;
}

}  // namespace shardscope::store
