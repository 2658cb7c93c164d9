#include "app/analysis/block_interval.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

constexpr std::size_t kFewestBlocks = 4, kMostBlocks = 12, kInBlock = 8;

/// P(|T| < t) with angle = atan(t / sqrt(degrees)): finite sums for integer degrees of freedom (Abramowitz
/// and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
double within(double angle, std::size_t degrees) {
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = degrees % 2 == 1;
  double sum = 0, term = odd ? cosine : 1;
  for (std::size_t power = odd ? 1 : 0; power + 2 <= degrees; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

/// By how much the variance of the mean exceeds what `blocks` medians suggest, if the series is a first-order
/// autoregressive process: neighbouring blocks resemble each other a little, which also makes them scatter
/// less. From the correlation of the series' neighbours, at least 0.
double inflation(std::span<const double> series, std::size_t blocks) {
  double mean = 0, squares = 0, products = 0;
  for (const double value : series) mean += value / static_cast<double>(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    squares += (series[i] - mean) * (series[i] - mean);
    if (i > 0) products += (series[i] - mean) * (series[i - 1] - mean);
  }
  if (squares <= 0) return 1;
  const double r = std::clamp(products / squares, 0.0, 0.95);
  const double length = static_cast<double>(series.size()) / static_cast<double>(blocks);
  double within_block = length,
         power = r;  // variance and covariance of sums of blocks, in units of one value's variance
  for (double lag = 1; lag < length; ++lag, power *= r) within_block += 2 * (length - lag) * power;
  const double reach = (1 - std::pow(r, length)) / (1 - r);
  const double alike = r * reach * reach / within_block;  // correlation of neighbouring blocks
  const auto count = static_cast<double>(blocks);
  return (1 + 2 * (count - 1) / count * alike) / (1 - 2 * alike / count);
}

}  // namespace

double student_t(double confidence, std::size_t degrees) {
  if (!(confidence > 0 && confidence < 1) || degrees == 0)
    throw std::invalid_argument("student_t: a confidence between 0 and 1, a degree of freedom at least");
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (within(middle, degrees) < confidence ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan((low + high) / 2);
}

std::optional<ConfidenceInterval> mean_interval(std::span<const double> values, double confidence) {
  if (values.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = student_t(confidence, values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return ConfidenceInterval{mean, mean - half, mean + half, values.size()};
}

std::optional<ConfidenceInterval> block_interval(std::span<const double> series, double confidence) {
  if (series.size() < kFewestForInterval) return std::nullopt;
  const std::size_t blocks = std::clamp(series.size() / kInBlock, kFewestBlocks, kMostBlocks);
  std::vector<double> medians;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t begin = block * series.size() / blocks, end = (block + 1) * series.size() / blocks;
    medians.push_back(quantile({series.begin() + static_cast<std::ptrdiff_t>(begin),
                                series.begin() + static_cast<std::ptrdiff_t>(end)},
                               0.5));
  }
  std::optional<ConfidenceInterval> out = mean_interval(medians, confidence);
  const double wider = std::sqrt(inflation(series, blocks));
  out->low = out->middle - (out->middle - out->low) * wider;
  out->high = out->middle + (out->high - out->middle) * wider;
  return out;
}

}  // namespace shardscope::analysis
