// Appends to a column sorted by time when new elements may be slightly older: the
// rings of a rank's threads are drained one after the other, so consecutive chunks overlap in time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace shardscope::store {

/// std::stable_sort for input of a few sorted runs, one after the other: chunks are such, with one run for
/// each ring.
template <typename T, typename Earlier>
void stable_sort_runs(std::vector<T>& column, std::size_t from, Earlier earlier) {
  constexpr std::size_t kMostRuns = 64;
  const auto at = [&](std::size_t i) { return column.begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<std::size_t> edges = {from};
  while (edges.back() < column.size() && edges.size() <= kMostRuns) {
    edges.push_back(
        static_cast<std::size_t>(std::is_sorted_until(at(edges.back()), column.end(), earlier) - at(0)));
  }
  if (edges.back() < column.size()) {
    std::stable_sort(at(from), column.end(), earlier);
    return;
  }
  while (edges.size() > 2) {
    std::vector<std::size_t> merged = {from};
    for (std::size_t i = 0; i + 1 < edges.size(); i += 2) {
      const std::size_t end = edges[std::min(i + 2, edges.size() - 1)];
      if (i + 2 < edges.size()) std::inplace_merge(at(edges[i]), at(edges[i + 1]), at(end), earlier);
      merged.push_back(end);
    }
    edges = std::move(merged);
  }
}

/// Sorts `column` by `time(element)` again after elements were pushed from index `old_size`
/// on. Equal times keep the order of arrival. Returns the first index whose element may have changed.
/// O(new log new + overlap).
template <typename T, typename Time>
std::size_t merge_in_time(std::vector<T>& column, std::size_t old_size, Time time) {
  const auto earlier = [&](const T& a, const T& b) { return time(a) < time(b); };
  const auto middle = column.begin() + static_cast<std::ptrdiff_t>(old_size);
  if (middle == column.end()) return old_size;
  stable_sort_runs(column, old_size, earlier);
  if (old_size == 0 || !earlier(*middle, *(middle - 1))) return old_size;
  const auto first = std::upper_bound(column.begin(), middle, *middle, earlier);
  const auto changed = static_cast<std::size_t>(first - column.begin());
  std::inplace_merge(first, middle, column.end(), earlier);
  return changed;
}

}  // namespace shardscope::store
