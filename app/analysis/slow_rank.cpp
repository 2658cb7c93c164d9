#include "app/analysis/slow_rank.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardscope::analysis {

OthersMedian::OthersMedian(std::vector<double> values) : sorted_(std::move(values)) {
  std::ranges::sort(sorted_);
}

std::optional<double> OthersMedian::without(double own) const noexcept {
  if (sorted_.size() < 2) return std::nullopt;
  const auto place = std::ranges::lower_bound(sorted_, own);
  const auto out = static_cast<std::size_t>(std::min(place, sorted_.end() - 1) - sorted_.begin());
  const auto other = [&](std::size_t i) { return sorted_[i < out ? i : i + 1]; };
  const std::size_t count = sorted_.size() - 1;
  return count % 2 == 1 ? other(count / 2) : (other(count / 2 - 1) + other(count / 2)) / 2;
}

}  // namespace shardscope::analysis
