// Sets of time intervals: unions, never sums, so that overlapping work is counted once (metrics.md 2).
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::store {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;  ///< half open
};

/// Disjoint intervals in ascending order. Built from any intervals, in any order, overlapping or empty.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(std::vector<Interval> intervals);
  [[nodiscard]] std::int64_t length() const noexcept;
  [[nodiscard]] const std::vector<Interval>& intervals() const noexcept { return intervals_; }
  [[nodiscard]] IntervalSet unite(const IntervalSet& other) const;
  [[nodiscard]] IntervalSet subtract(const IntervalSet& other) const;
  [[nodiscard]] IntervalSet intersect(const IntervalSet& other) const { return subtract(subtract(other)); }
  [[nodiscard]] IntervalSet clip(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace shardscope::store
