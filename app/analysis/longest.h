// The kMost longest items of a stream, in bounded memory: a run may have no end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardscope::analysis {

/// Longest first; equal ones in the order added. `kLength`: a member, nanoseconds.
template <typename T, auto kLength>
class Longest {
 public:
  static constexpr std::size_t kMost = 50;
  void add(const T& one) {
    if (items_.size() == kMost) {
      if (one.*kLength <= items_.back().*kLength) return;
      items_.pop_back();
    }
    const auto at = std::upper_bound(items_.begin(), items_.end(), one,
                                     [](const T& a, const T& b) { return a.*kLength > b.*kLength; });
    items_.insert(at, one);
  }
  void add(const std::vector<T>& several) {
    for (const T& one : several) add(one);
  }
  [[nodiscard]] const std::vector<T>& all() const noexcept { return items_; }

 private:
  std::vector<T> items_;
};

}  // namespace shardscope::analysis
