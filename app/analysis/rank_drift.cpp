#include "app/analysis/rank_drift.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "app/analysis/change_points.h"
#include "app/analysis/excess_series.h"
#include "app/analysis/slow_rank.h"
#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

/// Excess, as a fraction, from which a rank is examined; it is reported from twice this on.
constexpr double kNotable = 0.01;
/// 95 % quantile of chi-squared with one degree of freedom: bound of the likelihood ratio of a change point.
constexpr double kChiSquared = 3.84;

std::int64_t nanoseconds(double hours) { return static_cast<std::int64_t>(hours * 3600e9); }

std::span<const double> part(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return std::span(values).subspan(begin, end - begin);
}

double median(std::span<const double> values) { return quantile({values.begin(), values.end()}, 0.5); }

/// Mean over stretches [begin, end), weighted by measured steps.
double mean_of(const ExcessSeries& series, const std::vector<double>& values, std::size_t begin,
               std::size_t end) {
  double sum = 0, steps = 0;
  for (std::size_t i = begin; i < end; ++i) {
    sum += series.steps[i] * values[i];
    steps += series.steps[i];
  }
  return sum / steps;
}

/// The stretches with the largest sum of excess over the rank's own level.
struct Segment {
  std::size_t begin = 0, end = 0;
  double sum = 0;
  [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
};

/// The level is the lower one of the first and last eighth: a rank that is always 5 % slower is so in both.
Segment worst_of(const ExcessSeries& series, std::size_t from) {
  const std::size_t count = series.size() - from,
                    some = std::min(count, std::max(count / 8, kFewestForInterval));
  const double level = std::min(median(part(series.excess, from, from + some)),
                                median(part(series.excess, series.size() - some, series.size())));
  Segment best{from, from, 0}, now = best;
  for (std::size_t i = from; i < series.size(); ++i) {
    if (now.sum <= 0) now = {i, i, 0};
    now.sum += series.excess[i] - level - kNotable;
    now.end = i + 1;
    if (now.sum > best.sum) best = now;
  }
  return best;
}

/// Bayesian information criterion: residual sum of squares plus a penalty per parameter.
double criterion(double rest, std::size_t n, std::size_t parameters) {
  // An exact fit has a logarithm of minus infinity: bound the deviation at a millionth of the time.
  constexpr double kExact = 1e-12;
  const auto count = static_cast<double>(n);
  return count * std::log(std::max(rest / count, kExact)) + static_cast<double>(parameters) * std::log(count);
}

/// [Note: confidence of a drift]
/// The stretch in which a drift begins was selected among all stretches, and its rank among all ranks: with
/// 95 % intervals each, chance alone would give one. So the 5 % are divided by ranks x stretches, and by the
/// number of stretches again for each further end that was selected: where the drift ends, and after which
/// the search was repeated. The variance is that of all stretches around the fitted shape, not only of the
/// slow ones, and at least the typical rank's: so eight slow stretches of five hundred are enough.
/// [Note: neighbours resemble each other].
class DriftConfidence {
 public:
  DriftConfidence(std::size_t ranks, std::size_t stretches, std::size_t chosen_ends, const Scatter& typical)
      : typical_(typical) {
    const auto all = static_cast<double>(stretches);
    confidence_ =
        1 - 0.05 / (static_cast<double>(ranks) * std::pow(all, 1.0 + static_cast<double>(chosen_ends)));
  }
  explicit DriftConfidence(const Scatter& typical) : typical_(typical) {}

  [[nodiscard]] Scatter scatter(std::span<const double> residuals) const {
    return larger_of(scatter_of(residuals), typical_);
  }
  /// In percent of a fraction; `n`: number of stretches behind `scatter`.
  [[nodiscard]] ConfidenceInterval interval(double middle, double variance, std::size_t n,
                                            const Scatter& scatter) const {
    const auto worth = static_cast<std::size_t>(static_cast<double>(n) / scatter.inflation());
    const double half = student_t(confidence_, std::max<std::size_t>(worth, 5) - 3) * std::sqrt(variance);
    return {100 * middle, 100 * (middle - half), 100 * (middle + half), n};
  }

 private:
  double confidence_ = 0.95;
  Scatter typical_;
};

/// Variance of a median of n consecutive stretches: larger than that of the mean, for normal values.
double variance_of_median(const Scatter& scatter, std::size_t n) {
  return std::numbers::pi / 2 * scatter.variance_of_mean(n);
}

/// Excess before and after a time, and its change.
struct Levels {
  ConfidenceInterval before, after, change;  ///< percent
};

/// Levels of [from, at) and [at, end). Each side has at least the variance of both together.
Levels levels_of(const ExcessSeries& series, std::size_t from, std::size_t at, std::size_t end,
                 const DriftConfidence& sure) {
  const std::span<const double> before = part(series.excess, from, at), after = part(series.excess, at, end);
  const double low = median(before), high = median(after);
  std::vector<double> residuals;
  for (const double value : before) residuals.push_back(value - low);
  for (const double value : after) residuals.push_back(value - high);
  const Scatter both = sure.scatter(residuals);
  const auto of_side = [&](std::span<const double> values) {
    Scatter own = both;
    own.deviation = std::max(own.deviation, scatter_of(values).deviation);
    return variance_of_median(own, values.size());
  };
  const double of_before = of_side(before), of_after = of_side(after);
  return {.before = sure.interval(low, of_before, end - from, both),
          .after = sure.interval(high, of_after, end - from, both),
          .change = sure.interval(high - low, of_before + of_after, end - from, both)};
}

/// Stretches in which the change may lie, plus one on each side, since it may be at any step of a stretch.
std::pair<std::size_t, std::size_t> around(const ChangePoints& points, std::size_t end,
                                           const Scatter& scatter) {
  const std::size_t count = end - points.from;
  const double freedom = static_cast<double>(std::max<std::size_t>(count, 4) - 3);
  const double most =
      points.rest[points.best - points.from] * (1 + kChiSquared * scatter.inflation() / freedom);
  std::size_t low = points.best, high = points.best;
  for (std::size_t i = 0; i < points.rest.size(); ++i) {
    if (points.rest[i] > most) continue;
    low = std::min(low, points.from + i);
    high = std::max(high, points.from + i);
  }
  return {low > points.from ? low - 1 : points.from, std::min(high + 1, end - 1)};
}

/// Searches stretches [from, end) of one rank.
class DriftSearch {
 public:
  DriftSearch(const ExcessSeries& series, std::size_t from, std::size_t end, const DriftConfidence& sure)
      : series_(series), from_(from), end_(end), sure_(sure), fits_(series, from, end) {
    out_.rank = series.rank;
  }

  std::optional<RankDrift> run() {
    const std::size_t count = end_ - from_;
    const ChangePoints jumps = change_points(fits_, ChangeShape::jump, from_, end_);
    const ChangePoints ramps = change_points(fits_, ChangeShape::ramp, from_, end_);
    const double as_always = criterion(fits_.rest_of_constant(), count, 1),
                 as_jump = criterion(jumps.rest[jumps.best - from_], count, 3),
                 as_ramp = criterion(ramps.rest[ramps.best - from_], count, ramps.best == from_ ? 2 : 3);
    // The criterion assumes independent stretches, so it only selects the shapes to test.
    if (as_ramp < as_always && as_ramp <= as_jump && grows(ramps)) return std::move(out_);
    if (as_jump < as_always && jumps.best > from_ && at_once(jumps)) return std::move(out_);
    if (from_ == 0 && always()) return std::move(out_);
    return std::nullopt;
  }

 private:
  void say(DriftShape shape, std::size_t begin, std::pair<std::size_t, std::size_t> where) {
    out_.shape = shape;
    out_.since_ns = nanoseconds(series_.begin_h[begin]);
    out_.since_low_ns = nanoseconds(series_.begin_h[where.first]);
    out_.since_high_ns = nanoseconds(series_.begin_h[where.second]);
    out_.since_step = series_.first_step[begin];
    out_.until_ns = nanoseconds(series_.end_h[end_ - 1]);
    const std::size_t last = end_ - std::max<std::size_t>((end_ - begin) / 12, 1);
    out_.last_pct = 100 * mean_of(series_, series_.excess, last, end_);
    out_.own_ms = mean_of(series_, series_.own_ms, last, end_);
    out_.others_ms = mean_of(series_, series_.others_ms, last, end_);
  }

  /// Percent per hour. Larger times vary more: residuals are weighted by their own position.
  ConfidenceInterval slope_interval(std::size_t c, const Scatter& scatter) const {
    const FittedLine line = fits_.fit(ChangeShape::ramp, c);
    const std::vector<double> residuals = fits_.residuals(ChangeShape::ramp, c);
    const double alike = scatter.deviation * scatter.deviation;
    double mean = 0, xx = 0, where_they_are = 0;
    for (std::size_t i = from_; i < end_; ++i)
      mean += fits_.x(ChangeShape::ramp, c, i) / static_cast<double>(end_ - from_);
    for (std::size_t i = from_; i < end_; ++i) {
      const double off = fits_.x(ChangeShape::ramp, c, i) - mean, left = residuals[i - from_];
      xx += off * off;
      where_they_are += off * off * left * left;
    }
    if (xx <= 0) return {100 * line.b, -HUGE_VAL, HUGE_VAL, end_ - from_};
    const double variance = std::max(alike / xx, where_they_are / (xx * xx)) * scatter.inflation();
    return sure_.interval(line.b, variance, end_ - from_, scatter);
  }

  bool grows(const ChangePoints& ramps) {
    const FittedLine line = fits_.fit(ChangeShape::ramp, ramps.best);
    const double grown = line.b * fits_.x(ChangeShape::ramp, ramps.best, end_ - 1);
    if (line.xx <= 0 || grown < 2 * kNotable) return false;
    const Scatter scatter = sure_.scatter(fits_.residuals(ChangeShape::ramp, ramps.best));
    const auto where = ramps.best == from_ ? std::pair{from_, from_} : around(ramps, end_, scatter);
    ConfidenceInterval slope = slope_interval(ramps.best, scatter);
    // The begin is uncertain and the slope depends on it: take the union of the intervals.
    for (std::size_t c = where.first; c <= where.second && c - from_ < ramps.rest.size(); ++c) {
      const ConfidenceInterval other = slope_interval(c, scatter);
      slope.low = std::min(slope.low, other.low);
      slope.high = std::max(slope.high, other.high);
    }
    if (slope.low <= 0) return false;
    say(DriftShape::grows, ramps.best, where);
    if (out_.last_pct < 200 * kNotable) return false;
    out_.pct_per_hour = slope;
    return true;
  }

  bool at_once(const ChangePoints& jumps) {
    const Levels levels = levels_of(series_, from_, jumps.best, end_, sure_);
    if (levels.change.low <= 0 || levels.change.middle < 200 * kNotable ||
        levels.after.middle < 200 * kNotable)
      return false;
    say(DriftShape::at_once, jumps.best,
        around(jumps, end_, sure_.scatter(fits_.residuals(ChangeShape::jump, jumps.best))));
    out_.excess_pct = levels.after;
    out_.before_pct = levels.before.middle;
    out_.change_pct = levels.change;
    return true;
  }

  /// Constantly slower: reported from kSlowRank on, since machines always differ a little.
  bool always() {
    const std::span<const double> all = part(series_.excess, from_, end_);
    const double level = median(all);
    if (level < kSlowRank - 1) return false;
    const Scatter scatter = sure_.scatter(all);
    const ConfidenceInterval interval =
        sure_.interval(level, variance_of_median(scatter, all.size()), all.size(), scatter);
    if (interval.low <= 0) return false;
    say(DriftShape::always, from_, {from_, from_});
    out_.excess_pct = interval;
    return true;
  }

  const ExcessSeries& series_;
  std::size_t from_, end_;
  DriftConfidence sure_;
  ShapeFits fits_;
  RankDrift out_;
};

/// The level from `end` on if the drift is over: the rank is as fast as the others, also in the last
/// stretches, and significantly faster than in [begin, end).
std::optional<ConfidenceInterval> after(const ExcessSeries& series, std::size_t begin, std::size_t end,
                                        const Scatter& typical) {
  const Levels levels = levels_of(series, begin, end, series.size(), DriftConfidence(typical));
  const std::size_t last = std::max(end, series.size() - kFewestForInterval);
  if (levels.after.middle > 100 * kNotable || levels.change.high >= 0) return std::nullopt;
  if (median(part(series.excess, last, series.size())) > kNotable) return std::nullopt;
  return levels.after;
}

/// The latest drift from stretch `from` on: the current one, or the last.
std::optional<RankDrift> drift_of(const ExcessSeries& series, std::size_t from, std::size_t ranks,
                                  const Scatter& typical) {
  const std::size_t all = series.size();
  if (all - from < kFewestForInterval) return std::nullopt;
  const std::size_t again = from == 0 ? 0 : 1;
  const Segment worst = worst_of(series, from);
  // Too few stretches at the end do not show that it is over.
  if (worst.size() >= kFewestForInterval && all - worst.end >= kFewestForInterval) {
    if (auto later = drift_of(series, worst.end, ranks, typical)) return later;
    if (const auto level = after(series, worst.begin, worst.end, typical)) {
      auto past = DriftSearch(series, from, worst.end, DriftConfidence(ranks, all, 1 + again, typical)).run();
      if (past) {
        past->over = true;
        past->after_pct = level;
        return past;
      }
    }
  }
  return DriftSearch(series, from, all, DriftConfidence(ranks, all, again, typical)).run();
}

}  // namespace

std::vector<RankDrift> rank_drifts(std::span<const store::OwnTimeRow> times,
                                   std::span<const store::StepRow> steps) {
  const std::vector<ExcessSeries> all = excess_series(times, steps);
  const Scatter typical = typical_scatter(all);
  std::vector<RankDrift> out;
  for (const ExcessSeries& series : all)
    if (auto drift = drift_of(series, 0, all.size(), typical)) out.push_back(std::move(*drift));
  // Lasting drifts first, so that the limit removes past ones first.
  std::ranges::stable_sort(out, [](const RankDrift& a, const RankDrift& b) {
    return std::pair(a.over, -a.last_pct) < std::pair(b.over, -b.last_pct);
  });
  if (out.size() > kMostDrifts) out.resize(kMostDrifts);
  return out;
}

}  // namespace shardscope::analysis
