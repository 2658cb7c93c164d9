// Levels of detail of one row of spans: how busy, how many, mostly what, per power-of-two bucket of time.
// Grows with the run; a query costs what its columns cost, however many spans there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

/// [Note: adaptive leaf width]
/// Level 0 has buckets of 2^shift ns and every level above has buckets twice as wide. When the row would
/// need more leaves than a quarter of its spans (and more than a screen needs), level 0 is dropped and the
/// level above becomes the finest. So memory stays proportional to the spans (8 bytes each in a long row)
/// whatever the range of time, and a view finer than the leaves meets few spans per column, which are drawn
/// directly.
class DensityPyramid {
 public:
  /// Adds a closed span. Spans of a row do not overlap and come in order of time; times are >= 0.
  void append(std::int64_t begin_ns, std::int64_t end_ns, ev::EventKind kind, std::uint8_t code);
  /// Brings the upper levels up to date after some append() calls; must run before columns().
  void settle();
  /// Whether columns of this width can be answered from buckets.
  [[nodiscard]] bool covers(double column_ns) const noexcept;
  /// Fills `columns` evenly spaced over [begin, end). Shares of edge buckets are split by overlap.
  void columns(std::int64_t begin_ns, std::int64_t end_ns, std::span<Density> columns) const;
  void clear();
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  /// `weight` is a weighted majority vote (Boyer and Moore, "MJRTY"): it names the kind with more than
  /// half of the busy time exactly, and two votes can be merged.
  struct Bucket {
    float busy_ns = 0;
    float weight = 0;
    std::uint32_t begins = 0;
    ev::EventKind kind{};
    std::uint8_t code = 0;
  };
  static void vote(Bucket& bucket, float weight, ev::EventKind kind, std::uint8_t code) noexcept;
  static Bucket merged(const Bucket& left, const Bucket& right) noexcept;
  void coarsen();

  unsigned shift_ = 10;  ///< leaves of 1.024 us to begin with
  std::size_t spans_ = 0;
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0;
  std::size_t dirty_ = SIZE_MAX;  ///< first leaf whose parents are out of date
  std::vector<std::vector<Bucket>> levels_{1};
};

}  // namespace shardscope::store
