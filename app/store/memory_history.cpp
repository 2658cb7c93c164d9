#include "app/store/memory_history.h"

#include <algorithm>

namespace shardscope::store {

void MemoryHistory::join(Leaf& to, const Leaf& next) {
  if (next.highest.total() > to.highest.total()) to.highest = next.highest;
}

void MemoryHistory::append(std::span<const Leaf> leaves, std::int64_t end_ns) {
  for (const Leaf& leaf : leaves) {
    if (!leaves_.empty() && in_last_ < each_) {
      join(leaves_.back(), leaf);
      ++in_last_;
      continue;
    }
    if (leaves_.size() == kMost) {
      for (std::size_t i = 0; i < kMost / 2; ++i) {
        leaves_[i] = leaves_[2 * i];
        join(leaves_[i], leaves_[2 * i + 1]);
      }
      leaves_.resize(kMost / 2);
      each_ *= 2;
    }
    leaves_.push_back(leaf);
    in_last_ = 1;
  }
  end_ns_ = std::max(end_ns_, end_ns);
}

const MemorySample* MemoryHistory::at(std::int64_t at_ns) const noexcept {
  const auto next = std::partition_point(leaves_.begin(), leaves_.end(),
                                         [at_ns](const Leaf& leaf) { return leaf.begin_ns <= at_ns; });
  return next == leaves_.begin() ? nullptr : &std::prev(next)->highest;
}

}  // namespace shardscope::store
