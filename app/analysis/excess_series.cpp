#include "app/analysis/excess_series.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "app/analysis/slow_rank.h"
#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

constexpr double kHourNs = 3600e9, kNsPerMs = 1e6;
/// On each side of a stretch: a median of five tolerates two stops.
constexpr std::size_t kNeighbours = 2;
/// A stretch this many standard deviations from its neighbours, and at least 1 %, is a stop.
constexpr double kStop = 3, kLeastStop = 0.01;
/// Upper bound: a more correlated series contains almost no information.
constexpr double kMostAlike = 0.98;

double hours(std::int64_t ns) { return static_cast<double>(ns) / kHourNs; }

std::vector<double> without_stops(const std::vector<double>& values) {
  std::vector<double> middle, off;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t begin = i - std::min(i, kNeighbours),
                      end = std::min(i + kNeighbours + 1, values.size());
    middle.push_back(quantile({values.begin() + static_cast<std::ptrdiff_t>(begin),
                               values.begin() + static_cast<std::ptrdiff_t>(end)},
                              0.5));
    off.push_back(std::abs(values[i] - middle.back()));
  }
  if (values.empty()) return {};
  // The median absolute deviation of a normal distribution is its standard deviation / 1.4826.
  const double most = std::max(kStop * 1.4826 * quantile(off, 0.5), kLeastStop);
  std::vector<double> out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(std::clamp(values[i], middle[i] - most, middle[i] + most));
  return out;
}

using Rows = std::vector<const store::OwnTimeRow*>;

void leave_out_short(Rows& rows) {
  std::vector<double> measured;
  for (const store::OwnTimeRow* row : rows) measured.push_back(row->steps);
  const double least = quantile(std::move(measured), 0.5) / 2;
  std::erase_if(rows, [least](const store::OwnTimeRow* row) { return row->steps < least; });
}

}  // namespace

std::vector<ExcessSeries> excess_series(std::span<const store::OwnTimeRow> times,
                                        std::span<const store::StepRow> steps) {
  std::map<std::uint32_t, Rows> stretches;
  for (const store::OwnTimeRow& row : times) stretches[row.first_step].push_back(&row);
  std::map<std::uint32_t, ExcessSeries> ranks;
  for (auto& [first, rows] : stretches) {
    const auto begin = std::ranges::lower_bound(steps, first, {}, &store::StepRow::step);
    auto last = std::ranges::upper_bound(steps, rows.front()->last_step, {}, &store::StepRow::step);
    while (last != begin && std::prev(last)->end_ns == store::kOpen) --last;
    if (last == begin) continue;  // no step of it has a recorded end
    leave_out_short(rows);
    std::vector<double> own;
    for (const store::OwnTimeRow* row : rows)
      own.push_back(static_cast<double>(row->own_ns) / row->steps / kNsPerMs);
    const OthersMedian medians(own);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::optional<double> others = medians.without(own[i]);
      if (!others || *others <= 0) continue;
      ExcessSeries& series = ranks[rows[i]->rank];
      series.rank = rows[i]->rank;
      series.excess.push_back(own[i] / *others - 1);
      series.own_ms.push_back(own[i]);
      series.others_ms.push_back(*others);
      series.steps.push_back(rows[i]->steps);
      series.begin_h.push_back(hours(begin->begin_ns));
      series.end_h.push_back(hours(std::prev(last)->end_ns));
      series.first_step.push_back(first);
    }
  }
  std::vector<ExcessSeries> out;
  for (auto& [rank, series] : ranks) {
    series.excess = without_stops(series.excess);
    out.push_back(std::move(series));
  }
  return out;
}

double Scatter::variance_of_mean(std::size_t n) const noexcept {
  const auto count = static_cast<double>(n);
  const double inner = inflation() - 2 * neighbours * (1 - std::pow(neighbours, count)) /
                                         (count * (1 - neighbours) * (1 - neighbours));
  return deviation * deviation / count * inner;
}

Scatter scatter_of(std::span<const double> residuals) {
  const auto count = static_cast<double>(residuals.size());
  if (residuals.size() < 4) return {};
  double mean = 0, squares = 0, products = 0;
  for (const double value : residuals) mean += value / count;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double off = residuals[i] - mean;
    squares += off * off;
    if (i > 0) products += off * (residuals[i - 1] - mean);
  }
  if (squares <= 0) return {};
  // The estimate is too small by (1 + 3 r) / n on average (Kendall 1954).
  const double alike = (products / squares + 1 / count) / (1 - 3 / count);
  return {.deviation = std::sqrt(squares / (count - 1)), .neighbours = std::clamp(alike, 0.0, kMostAlike)};
}

Scatter typical_scatter(std::span<const ExcessSeries> ranks) {
  std::vector<double> deviations, neighbours;
  for (const ExcessSeries& series : ranks) {
    const Scatter own = scatter_of(series.excess);
    deviations.push_back(own.deviation);
    neighbours.push_back(own.neighbours);
  }
  if (deviations.empty()) return {};
  return {.deviation = quantile(std::move(deviations), 0.5),
          .neighbours = quantile(std::move(neighbours), 0.5)};
}

Scatter larger_of(const Scatter& a, const Scatter& b) noexcept {
  return {.deviation = std::max(a.deviation, b.deviation),
          .neighbours = std::max(a.neighbours, b.neighbours)};
}

}  // namespace shardscope::analysis
