#include "app/store/interval_set.h"

#include <algorithm>
#include <utility>

namespace shardscope::store {

IntervalSet::IntervalSet(std::vector<Interval> intervals) : intervals_(std::move(intervals)) {
  std::erase_if(intervals_, [](const Interval& i) { return i.end <= i.begin; });
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Interval& interval : intervals_) {
    if (kept > 0 && interval.begin <= intervals_[kept - 1].end) {
      intervals_[kept - 1].end = std::max(intervals_[kept - 1].end, interval.end);
    } else {
      intervals_[kept++] = interval;
    }
  }
  intervals_.resize(kept);
}

std::int64_t IntervalSet::length() const noexcept {
  std::int64_t sum = 0;
  for (const Interval& interval : intervals_) sum += interval.end - interval.begin;
  return sum;
}

IntervalSet IntervalSet::unite(const IntervalSet& other) const {
  std::vector<Interval> all = intervals_;
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  return IntervalSet(std::move(all));
}

IntervalSet IntervalSet::subtract(const IntervalSet& other) const {
  IntervalSet result;
  std::size_t next = 0;
  for (Interval rest : intervals_) {
    while (next < other.intervals_.size() && other.intervals_[next].end <= rest.begin) ++next;
    for (std::size_t i = next; i < other.intervals_.size() && other.intervals_[i].begin < rest.end; ++i) {
      const Interval& hole = other.intervals_[i];
      if (hole.begin > rest.begin) result.intervals_.push_back({rest.begin, hole.begin});
      rest.begin = std::max(rest.begin, hole.end);
      if (rest.begin >= rest.end) break;
    }
    if (rest.begin < rest.end) result.intervals_.push_back(rest);
  }
  return result;
}

IntervalSet IntervalSet::clip(std::int64_t begin, std::int64_t end) const {
  IntervalSet result;
  for (const Interval& interval : intervals_) {
    const Interval cut{std::max(interval.begin, begin), std::min(interval.end, end)};
    if (cut.begin < cut.end) result.intervals_.push_back(cut);
  }
  return result;
}

}  // namespace shardscope::store
