#include "app/analysis/rank_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/analysis/quantity_text.h"
#include "app/analysis/slow_rank.h"
#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

constexpr double kHourNs = 3600e9, kNsPerMs = 1e6;
/// A rank is looked at from this excess on, and named from twice of it on: parts of its own time.
constexpr double kNotable = 0.01;
/// How much likelier than chance a change point must be: the bound of chi-squared with one degree at 95 %.
constexpr double kChiSquared = 3.84;

/// One rank over the stretches in which it and another were measured.
struct Series {
  std::uint32_t rank = 0;
  std::vector<double> excess;             ///< own / median of the others - 1
  std::vector<double> own_ms, others_ms;  ///< of a step
  std::vector<double> begin_h, end_h;     ///< of the stretch, run's clock
  std::vector<std::uint32_t> first_step;
  [[nodiscard]] std::size_t size() const noexcept { return excess.size(); }
  [[nodiscard]] double middle_h(std::size_t i) const { return (begin_h[i] + end_h[i]) / 2; }
};

double hours(std::int64_t ns) { return static_cast<double>(ns) / kHourNs; }
std::int64_t nanoseconds(double hours) { return static_cast<std::int64_t>(hours * kHourNs); }

std::vector<Series> series_of(std::span<const store::OwnTimeRow> times,
                              std::span<const store::StepRow> steps) {
  std::map<std::uint32_t, std::vector<const store::OwnTimeRow*>> stretches;
  for (const store::OwnTimeRow& row : times) stretches[row.first_step].push_back(&row);
  std::map<std::uint32_t, Series> ranks;
  for (const auto& [first, rows] : stretches) {
    const auto begin = std::ranges::lower_bound(steps, first, {}, &store::StepRow::step);
    auto last = std::ranges::upper_bound(steps, rows.front()->last_step, {}, &store::StepRow::step);
    while (last != begin && std::prev(last)->end_ns == store::kOpen) --last;
    if (last == begin) continue;  // no step of it is known to have ended
    std::vector<double> own;
    for (const store::OwnTimeRow* row : rows)
      own.push_back(static_cast<double>(row->own_ns) / row->steps / kNsPerMs);
    const OthersMedian medians(own);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::optional<double> others = medians.without(own[i]);
      if (!others || *others <= 0) continue;
      Series& series = ranks[rows[i]->rank];
      series.rank = rows[i]->rank;
      series.excess.push_back(own[i] / *others - 1);
      series.own_ms.push_back(own[i]);
      series.others_ms.push_back(*others);
      series.begin_h.push_back(hours(begin->begin_ns));
      series.end_h.push_back(hours(std::prev(last)->end_ns));
      series.first_step.push_back(first);
    }
  }
  std::vector<Series> out;
  for (auto& [rank, series] : ranks) out.push_back(std::move(series));
  return out;
}

/// The stretches in which the excess over kNotable adds up to the most.
struct Segment {
  std::size_t begin = 0, end = 0;
  double sum = 0;
};

Segment worst_of(const Series& series) {
  Segment best, now;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (now.sum <= 0) now = {i, i, 0};
    now.sum += series.excess[i] - kNotable;
    now.end = i + 1;
    if (now.sum > best.sum) best = now;
  }
  return best;
}

/// Least squares of y over x: y = a + b x.
struct FittedLine {
  double a = 0, b = 0, b_error = 0, rest = 0;  ///< rest: sum of squares that is left
};

template <typename X>
FittedLine fit(std::span<const double> y, X x) {
  const auto n = static_cast<double>(y.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    mean_x += x(i) / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    xx += (x(i) - mean_x) * (x(i) - mean_x);
    xy += (x(i) - mean_x) * (y[i] - mean_y);
  }
  FittedLine line;
  line.b = xx > 0 ? xy / xx : 0;
  line.a = mean_y - line.b * mean_x;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double left = y[i] - line.a - line.b * x(i);
    line.rest += left * left;
  }
  if (xx > 0 && y.size() > 2) line.b_error = std::sqrt(line.rest / (n - 2) / xx);
  return line;
}

/// Change points of one shape: for each stretch in which it may have begun what least squares leave.
struct ChangePoints {
  std::size_t best = 0;
  std::vector<double> rest;  ///< by the stretch that it begins with
};

/// Up to `end`. `x(i, c)`: how the excess of stretch i grows where it began with stretch c.
template <typename X>
ChangePoints change_points(const Series& series, std::size_t end, X x) {
  ChangePoints out;
  const std::span<const double> y = std::span(series.excess).first(end);
  for (std::size_t c = 0; c + kFewestForInterval <= end; ++c) {
    const FittedLine line = fit(y, [&](std::size_t i) { return x(i, c); });
    // A rank that becomes faster is not what is looked for.
    out.rest.push_back(line.b > 0 ? line.rest : std::numeric_limits<double>::infinity());
    if (out.rest[c] < out.rest[out.best]) out.best = c;
  }
  return out;
}

/// Bayesian information criterion: what is left, and what each parameter costs.
double criterion(double rest, std::size_t n, std::size_t parameters) {
  // Of an exact fit the logarithm is minus infinity; a rounding error is as good.
  constexpr double kExact = 1e-18;
  const auto count = static_cast<double>(n);
  return count * std::log(std::max(rest / count, kExact)) + static_cast<double>(parameters) * std::log(count);
}

/// [Note: how sure a drift is]
/// The stretch where it begins was chosen among all of them, and the rank among all ranks: an interval at
/// 95 % of each would find one by chance. So the 5 % are shared among ranks x stretches, and where it is over
/// among the stretches where it may have ended as well. Intervals are by blocks of neighbours, as elsewhere:
/// block_interval.h.
double confidence_for(const Series& series, std::size_t ranks, bool over) {
  const auto stretches = static_cast<double>(series.size());
  return 1 - 0.05 / (static_cast<double>(ranks) * stretches * (over ? stretches : 1));
}

/// Of the slope in percent per hour, over medians of blocks of neighbours.
std::optional<ConfidenceInterval> slope_interval(const Series& series, std::size_t begin, std::size_t end,
                                                 double confidence) {
  constexpr std::size_t kBlocks = 12;
  const std::size_t count = end - begin, blocks = std::min(kBlocks, count / 2);
  if (blocks < 4) return std::nullopt;
  std::vector<double> at, middle;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t from = begin + block * count / blocks, until = begin + (block + 1) * count / blocks;
    std::vector<double> values, times;
    for (std::size_t i = from; i < until; ++i) {
      values.push_back(100 * series.excess[i]);
      times.push_back(series.middle_h(i));
    }
    middle.push_back(quantile(std::move(values), 0.5));
    at.push_back(quantile(std::move(times), 0.5));
  }
  const FittedLine line = fit(std::span<const double>(middle), [&](std::size_t i) { return at[i]; });
  const double half = student_t(confidence, blocks - 2) * line.b_error;
  return ConfidenceInterval{line.b, line.b - half, line.b + half, blocks};
}

/// Stretches where the change may lie as well, one more on either side: in which of its steps is not known.
std::pair<std::size_t, std::size_t> around(const ChangePoints& points, std::size_t end) {
  const double freedom = static_cast<double>(std::max<std::size_t>(end, 4) - 3);
  const double most = points.rest[points.best] * (1 + kChiSquared / freedom);
  std::size_t low = points.best, high = points.best;
  for (std::size_t c = 0; c < points.rest.size(); ++c) {
    if (points.rest[c] > most) continue;
    low = std::min(low, c);
    high = std::max(high, c);
  }
  return {low > 0 ? low - 1 : 0, std::min(high + 1, end - 1)};
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<RankDrift> drift_of(const Series& series, std::size_t ranks) {
  const Segment worst = worst_of(series);
  // A few stretches at the end say nothing of whether it is over.
  const bool over = series.size() - worst.end >= kFewestForInterval;
  const std::size_t end = over ? worst.end : series.size();
  if (end < kFewestForInterval || end - worst.begin < kFewestForInterval) return std::nullopt;
  const ChangePoints jumps =
      change_points(series, end, [](std::size_t i, std::size_t c) { return i >= c ? 1.0 : 0.0; });
  const ChangePoints ramps = change_points(series, end, [&](std::size_t i, std::size_t c) {
    return std::max(0.0, series.middle_h(i) - series.begin_h[c]);
  });
  const double confidence = confidence_for(series, ranks, over);
  const double constant = fit(std::span(series.excess).first(end), [](std::size_t) { return 0.0; }).rest;
  const double as_always = criterion(constant, end, 1), as_jump = criterion(jumps.rest[jumps.best], end, 3),
               as_ramp = criterion(ramps.rest[ramps.best], end, ramps.best == 0 ? 2 : 3);
  RankDrift out;
  out.rank = series.rank;
  out.over = over;
  std::size_t begin = 0;
  std::pair<std::size_t, std::size_t> where{0, 0};
  if (as_ramp < as_always && as_ramp <= as_jump) {
    out.pct_per_hour = slope_interval(series, ramps.best, end, confidence);
    if (out.pct_per_hour && out.pct_per_hour->low > 0) {
      out.shape = DriftShape::grows;
      begin = ramps.best;
      if (begin > 0) where = around(ramps, end);
    } else {
      out.pct_per_hour.reset();
    }
  }
  if (out.shape != DriftShape::grows && as_jump < as_always && jumps.best > 0) {
    out.shape = DriftShape::at_once;
    begin = jumps.best;
    where = around(jumps, end);
  }
  const std::span<const double> slow = std::span(series.excess).subspan(begin, end - begin);
  if (out.shape != DriftShape::grows) {
    const auto interval = block_interval(slow, confidence);
    if (!interval || interval->low <= 0) return std::nullopt;
    out.excess_pct = {100 * interval->middle, 100 * interval->low, 100 * interval->high, interval->blocks};
  }
  const std::size_t last = std::max<std::size_t>(slow.size() / 12, 1);
  out.last_pct = 100 * mean_of(slow.last(last));
  // One that always was a little slower is how machines are.
  const double least = out.shape == DriftShape::always ? kSlowRank - 1 : 2 * kNotable;
  if (out.last_pct < 100 * least) return std::nullopt;
  out.own_ms = mean_of(std::span(series.own_ms).subspan(end - last, last));
  out.others_ms = mean_of(std::span(series.others_ms).subspan(end - last, last));
  out.since_ns = nanoseconds(series.begin_h[begin]);
  out.since_low_ns = nanoseconds(series.begin_h[begin == 0 ? 0 : where.first]);
  out.since_high_ns = nanoseconds(series.begin_h[begin == 0 ? 0 : where.second]);
  out.since_step = series.first_step[begin];
  out.until_ns = nanoseconds(series.end_h[end - 1]);
  return out;
}

std::string hours_text(std::int64_t ns) {
  return hours(ns) < 1 ? time_text(ns) : fmt::format("{:.1f} h", hours(ns));
}

nlohmann::json interval_json(const std::optional<ConfidenceInterval>& interval) {
  if (!interval) return nullptr;
  return {{"middle", interval->middle}, {"low", interval->low}, {"high", interval->high}};
}

}  // namespace

const char* name_of(DriftShape shape) noexcept {
  switch (shape) {
    case DriftShape::always:
      return "always";
    case DriftShape::at_once:
      return "at_once";
    case DriftShape::grows:
      return "grows";
  }
  return "";
}

std::vector<RankDrift> rank_drifts(std::span<const store::OwnTimeRow> times,
                                   std::span<const store::StepRow> steps) {
  const std::vector<Series> all = series_of(times, steps);
  // All shapes of all of thousands of ranks would take minutes: those that stand out.
  std::vector<std::pair<double, const Series*>> order;
  for (const Series& series : all)
    if (const double sum = worst_of(series).sum; sum > 0) order.emplace_back(-sum, &series);
  std::ranges::sort(order);
  if (order.size() > kMostDrifts) order.resize(kMostDrifts);
  std::vector<RankDrift> out;
  for (const auto& [sum, series] : order)
    if (const auto drift = drift_of(*series, all.size())) out.push_back(*drift);
  std::ranges::stable_sort(out, std::ranges::greater(), &RankDrift::last_pct);
  return out;
}

std::string text_of(const RankDrift& drift) {
  std::string text;
  if (drift.shape == DriftShape::always || drift.since_high_ns <= drift.since_low_ns) {
    text = "Since the first hour that is kept";
  } else {
    text = fmt::format("Since {} of the run ({} to {}, from step {} on)", hours_text(drift.since_ns),
                       hours_text(drift.since_low_ns), hours_text(drift.since_high_ns), drift.since_step);
  }
  text += " its own time of a step, against the median of the others, ";
  if (drift.pct_per_hour) {
    text += fmt::format("grew by {:.2g} % each hour ({:.2g} to {:.2g} %, 95 %), to {:.1f} % more",
                        drift.pct_per_hour->middle, drift.pct_per_hour->low, drift.pct_per_hour->high,
                        drift.last_pct);
  } else if (drift.excess_pct) {
    text += fmt::format("was {:.1f} % longer ({:.1f} to {:.1f} %, 95 %){}", drift.excess_pct->middle,
                        drift.excess_pct->low, drift.excess_pct->high,
                        drift.shape == DriftShape::at_once ? " at once and did not grow" : "");
  }
  text += fmt::format(": {:.1f} instead of {:.1f} ms.", drift.own_ms, drift.others_ms);
  if (drift.over)
    text += fmt::format(" It lasted until {}: since then it takes no longer than the others.",
                        hours_text(drift.until_ns));
  return text;
}

nlohmann::json drifts_json(const std::optional<std::vector<RankDrift>>& drifts) {
  if (!drifts) return nullptr;
  nlohmann::json out = nlohmann::json::array();
  for (const RankDrift& drift : *drifts) {
    out.push_back({{"rank", drift.rank},
                   {"shape", name_of(drift.shape)},
                   {"since_ns", drift.since_ns},
                   {"since_low_ns", drift.since_low_ns},
                   {"since_high_ns", drift.since_high_ns},
                   {"since_step", drift.since_step},
                   {"until_ns", drift.until_ns},
                   {"over", drift.over},
                   {"excess_pct", interval_json(drift.excess_pct)},
                   {"last_pct", drift.last_pct},
                   {"pct_per_hour", interval_json(drift.pct_per_hour)},
                   {"own_ms", drift.own_ms},
                   {"others_ms", drift.others_ms}});
  }
  return out;
}

}  // namespace shardscope::analysis
