// Gradient buckets of one rank that are open: state at the latest event, or at a time by replay.
#pragma once

#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

class BucketTracker {
 public:
  BucketTracker() = default;
  explicit BucketTracker(std::vector<BucketState> open) : open_(std::move(open)) {}
  /// Takes events of kind bucket_open, bucket_add or bucket_flush; any other is ignored.
  void add(const ev::Event& event, std::int64_t at_ns);
  [[nodiscard]] const std::vector<BucketState>& open() const noexcept { return open_; }

 private:
  /// Bounds for adds and flushes whose counterpart was lost.
  static constexpr std::size_t kMostOpen = 64, kMostParams = 1U << 16;
  std::vector<BucketState> open_;  ///< oldest first
};

}  // namespace shardscope::store
