// Appending to a column kept in order of time, when what arrives may reach a little into the past: the
// rings of a rank's threads are drained one after the other, so consecutive chunks overlap in time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardscope::store {

/// Makes all of `column` ordered by `time(element)` again after elements were pushed from index `old_size`
/// on. Equal times keep the order of arrival. Returns the first index whose element may have changed.
/// O(new log new + overlap).
template <typename T, typename Time>
std::size_t merge_in_time(std::vector<T>& column, std::size_t old_size, Time time) {
  const auto earlier = [&](const T& a, const T& b) { return time(a) < time(b); };
  const auto middle = column.begin() + static_cast<std::ptrdiff_t>(old_size);
  if (middle == column.end()) return old_size;
  if (!std::is_sorted(middle, column.end(), earlier)) std::stable_sort(middle, column.end(), earlier);
  if (old_size == 0 || !earlier(*middle, *(middle - 1))) return old_size;
  const auto first = std::upper_bound(column.begin(), middle, *middle, earlier);
  const auto changed = static_cast<std::size_t>(first - column.begin());
  std::inplace_merge(first, middle, column.end(), earlier);
  return changed;
}

}  // namespace shardscope::store
