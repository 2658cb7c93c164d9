#include "app/analysis/block_interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

constexpr std::size_t kFewestBlocks = 4, kMostBlocks = 12, kInBlock = 8;
/// Quantiles 0.975 of Student's t with 3 to 11 degrees of freedom.
constexpr std::array kStudent{3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201};
static_assert(kStudent.size() == kMostBlocks - kFewestBlocks + 1);

}  // namespace

std::optional<ConfidenceInterval> block_interval(std::span<const double> series) {
  if (series.size() < kFewestForInterval) return std::nullopt;
  const std::size_t blocks = std::clamp(series.size() / kInBlock, kFewestBlocks, kMostBlocks);
  std::vector<double> medians;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t begin = block * series.size() / blocks, end = (block + 1) * series.size() / blocks;
    medians.push_back(quantile({series.begin() + static_cast<std::ptrdiff_t>(begin),
                                series.begin() + static_cast<std::ptrdiff_t>(end)},
                               0.5));
  }
  const auto count = static_cast<double>(blocks);
  double mean = 0, squares = 0;
  for (const double value : medians) mean += value / count;
  for (const double value : medians) squares += (value - mean) * (value - mean);
  const double half = kStudent[blocks - kFewestBlocks] * std::sqrt(squares / (count - 1) / count);
  return ConfidenceInterval{mean, mean - half, mean + half, blocks};
}

}  // namespace shardscope::analysis
