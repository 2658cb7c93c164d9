#include "app/gui/model/span_statistics.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/new_hits.h"

namespace shardscope::gui {
namespace {

/// Length of a sorted run: sorting it takes a fraction of a frame.
constexpr std::size_t kRun = std::size_t{1} << 14;

std::uint32_t group_of(GroupBy by, store::LaneId lane, const SpanHit& hit) noexcept {
  switch (by) {
    case GroupBy::name:
      return hit.name;
    case GroupBy::rank:
      return lane.rank;
    case GroupBy::module:
      return hit.module;
    case GroupBy::step:
      return hit.step;
    case GroupBy::stream:
      return static_cast<std::uint32_t>(lane.stream);
    case GroupBy::parent:
      return hit.within;
  }
  return ev::kNoId;
}

}  // namespace

void TimeSample::add(std::int64_t ns) {
  if (runs_.empty() || runs_.back().size() >= kRun) {
    settle();
    runs_.emplace_back();
  }
  runs_.back().push_back(ns);
  ++count_;
  total_ += ns;
  // Welford's algorithm: avoids the difference of two large sums.
  const auto value = static_cast<double>(ns);
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
  least_ = std::min(least_, ns);
  most_ = std::max(most_, ns);
}

double TimeSample::sigma() const noexcept {
  return count_ == 0 ? 0 : std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_)));
}

void TimeSample::settle() {
  if (!runs_.empty()) std::ranges::sort(runs_.back());
}

std::size_t TimeSample::below(std::int64_t ns) const {
  std::size_t sum = 0;
  for (const auto& run : runs_)
    sum += static_cast<std::size_t>(std::ranges::lower_bound(run, ns) - run.begin());
  return sum;
}

std::int64_t TimeSample::at(std::size_t k) const {
  if (runs_.size() == 1) return runs_.front()[k];
  // The largest value with at most k values below it.
  std::int64_t low = least_;
  std::int64_t high = most_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2 + 1;
    if (below(middle) <= k)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

double TimeSample::quantile(double q) const {
  const double where = q * static_cast<double>(count_ - 1);
  const auto k = static_cast<std::size_t>(where);
  const auto low = static_cast<double>(at(k));  // durations are below 2^53 ns
  const double share = where - static_cast<double>(k);
  if (share == 0) return low;
  const std::int64_t above = static_cast<std::int64_t>(low) + 1;
  std::int64_t next = above - 1;  // the same value again, or the next larger one
  if (below(above) <= k + 1) {
    next = most_;
    for (const auto& run : runs_) {
      const auto longer = std::ranges::lower_bound(run, above);
      if (longer != run.end()) next = std::min(next, *longer);
    }
  }
  return low + share * (static_cast<double>(next) - low);
}

const char* word(GroupBy by) noexcept {
  static constexpr const char* kWords[kGroupings] = {"name", "rank", "module", "step", "stream", "parent"};
  return kWords[static_cast<int>(by)];
}

bool SpanFilter::accepts(store::LaneId lane, const SpanHit& hit) const noexcept {
  return (!name || *name == hit.name) && (!rank || *rank == lane.rank) &&
         (!module || *module == hit.module) && (!step || *step == hit.step) &&
         (!within || *within == hit.within) && (!stream || *stream == lane.stream) &&
         (!time_ns || (hit.time_ns >= time_ns->first && hit.time_ns < time_ns->second));
}

void SpanFilter::narrow(GroupBy by, std::uint32_t key) {
  switch (by) {
    case GroupBy::name:
      name = key;
      return;
    case GroupBy::rank:
      rank = key;
      return;
    case GroupBy::module:
      module = key;
      return;
    case GroupBy::step:
      step = key;
      return;
    case GroupBy::stream:
      stream = static_cast<ev::StreamId>(key);
      return;
    case GroupBy::parent:
      within = key;
      return;
  }
}

void SpanGroup::take(const SpanHit& hit) {
  times.add(hit.time_ns);
  self_ns += hit.self_ns;
  parents = parents || hit.parent;
  settled = false;
}

void SpanGroup::settle() {
  if (times.count() > 0) {
    times.settle();
    p50 = times.quantile(0.5);
    p95 = times.quantile(0.95);
    p99 = times.quantile(0.99);
  }
  settled = true;
}

double SpanGroup::mean() const noexcept {
  return times.count() == 0 ? 0 : static_cast<double>(times.total()) / static_cast<double>(times.count());
}

namespace {

/// The least duration above 0, for the logarithmic scale: zeros go into the first bar.
std::int64_t least_above_zero(const TimeSample& times) {
  if (times.least() > 0) return times.least();
  const std::size_t zeros = times.below(1);
  std::int64_t low = 1;
  std::int64_t high = std::max<std::int64_t>(times.most(), 1);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (times.below(middle + 1) > zeros)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> times_of(const TimeHistogram& histogram, std::size_t one,
                                               std::size_t other) {
  const auto whole_ns = [](double ns) { return static_cast<std::int64_t>(std::ceil(ns)); };
  return {whole_ns(histogram.edges[std::min(one, other)]),
          whole_ns(histogram.edges[std::max(one, other) + 1])};
}

double mode_of(const TimeHistogram& histogram) {
  const auto highest = std::ranges::max_element(histogram.counts) - histogram.counts.begin();
  const double from = histogram.edges[static_cast<std::size_t>(highest)];
  const double to = histogram.edges[static_cast<std::size_t>(highest) + 1];
  return histogram.logarithmic && from > 0 ? std::sqrt(from * to) : (from + to) / 2;
}

TimeHistogram histogram(const TimeSample& times, std::size_t bars, HistogramScale scale) {
  TimeHistogram out;
  if (times.count() == 0 || bars == 0) return out;
  const auto least = static_cast<double>(least_above_zero(times));
  const double most = std::max(static_cast<double>(times.most()) + 1, least + 1);
  out.logarithmic =
      scale == HistogramScale::logarithmic || (scale == HistogramScale::automatic && most / least > 50);
  for (std::size_t i = 0; i <= bars; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(bars);
    out.edges.push_back(out.logarithmic ? least * std::pow(most / least, share)
                                        : least + share * (most - least));
  }
  out.edges.front() = std::min(out.edges.front(), static_cast<double>(times.least()));
  out.edges.back() = most;
  std::size_t before = 0;
  for (std::size_t i = 1; i <= bars; ++i) {
    const std::size_t until =
        i == bars ? times.count() : times.below(static_cast<std::int64_t>(std::ceil(out.edges[i])));
    out.counts.push_back(until - before);
    before = until;
  }
  return out;
}

void SpanStatistics::start(GroupBy by, SpanFilter filter) {
  *this = {};
  by_ = by;
  filter_ = filter;
}

void SpanStatistics::take(store::LaneId lane, const SpanHit& hit) {
  if (!filter_.accepts(lane, hit)) return;
  whole_.take(hit);
  if (hit.step != ev::kNoId) by_step_[hit.step] += hit.time_ns;
  const std::uint32_t key = group_of(by_, lane, hit);
  const auto [found, made] = group_of_.try_emplace(key, groups_.size());
  if (made) groups_.emplace_back().key = key;
  groups_[found->second].take(hit);
  unsettled_ = std::min(unsettled_, found->second);
}

bool SpanStatistics::advance(const SpanSearch& search, std::chrono::nanoseconds time) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const Taken taken = for_each_new_hit(
      search, taken_, began + time,
      [&](std::size_t, const SpanSearch::Lane& lane, std::size_t hit) { take(lane.id, lane.hits[hit]); });
  if (taken.any) ready_ = false;
  if (!taken.all) return true;
  if (ready_ || !search.done()) return taken.any;
  // Percentiles last: they would be recomputed with every new hit.
  while (unsettled_ < groups_.size()) {
    SpanGroup& group = groups_[unsettled_++];
    if (group.settled) continue;
    group.settle();
    if (Clock::now() - began >= time) return true;
  }
  whole_.settle();
  if (whole_.times.count() > 0) {
    whole_.p75 = whole_.times.quantile(0.75);
    whole_.p90 = whole_.times.quantile(0.9);
    whole_.p999 = whole_.times.quantile(0.999);
  }
  ready_ = true;
  return true;
}

}  // namespace shardscope::gui
