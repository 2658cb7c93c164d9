// Memory peaks by interval, for evicted blocks of a run: intervals get wider as the run gets longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/store/memory_index.h"

namespace shardscope::store {

class MemoryHistory {
 public:
  static constexpr std::size_t kMost = 256;  ///< intervals; beyond it, two neighbours are merged
  using Leaf = MemoryIndex::Leaf;
  /// Adds the next intervals; the last one ends at `end_ns`.
  void append(std::span<const Leaf> leaves, std::int64_t end_ns);
  [[nodiscard]] std::span<const Leaf> leaves() const noexcept { return leaves_; }
  [[nodiscard]] std::int64_t end_ns() const noexcept { return end_ns_; }
  /// Highest sample of the interval that contains a time; null before the first.
  [[nodiscard]] const MemorySample* at(std::int64_t at_ns) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return leaves_.capacity() * sizeof(Leaf); }

 private:
  static void join(Leaf& to, const Leaf& next);
  std::vector<Leaf> leaves_;
  std::size_t each_ = 1, in_last_ = 0;  ///< leaves per interval, and in the last one
  std::int64_t end_ns_ = 0;
};

}  // namespace shardscope::store
