// Levels of detail of one row of spans: how busy, how many, mostly what, per power-of-two bucket of time.
// Grows with the row; a query costs what its columns cost, however many spans there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/store/bytes.h"
#include "app/store/store.h"

namespace shardscope::store {

/// What is known of a stretch of a row. `weight` is a weighted majority vote (Boyer and Moore, "MJRTY"): it
/// names the kind with more than half of the busy time exactly, and two votes can be merged.
struct DensityBucket {
  float busy_ns = 0;
  float weight = 0;
  std::uint32_t begins = 0;
  ev::EventKind kind{};
  std::uint8_t code = 0;

  void vote(float busy, ev::EventKind its_kind, std::uint8_t its_code) noexcept;
  void merge(const DensityBucket& other) noexcept;
};

/// The columns of a view while they are filled: equal parts of [begin, end).
struct DensityColumns {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::span<DensityBucket> columns;

  [[nodiscard]] double width_ns() const noexcept {
    return static_cast<double>(end_ns - begin_ns) / static_cast<double>(columns.size());
  }
  /// Where column `i` begins; `i` == columns.size(): the end.
  [[nodiscard]] std::int64_t at(std::size_t i) const noexcept {
    return i >= columns.size() ? end_ns
                               : begin_ns + static_cast<std::int64_t>(width_ns() * static_cast<double>(i));
  }
  /// The column that holds `ns`, which lies in [begin, end).
  [[nodiscard]] std::size_t index(std::int64_t ns) const noexcept;
  /// Busy from `from_ns` to `to_ns`; `counted`: it begins here.
  void add(std::int64_t from_ns, std::int64_t to_ns, ev::EventKind kind, std::uint8_t code,
           bool counted) const noexcept;
};

/// [Note: adaptive leaf width]
/// Level 0 has buckets of 2^shift ns and every level above has buckets twice as wide. When the row would
/// need more leaves than a sixteenth of its spans (and more than a screen needs), level 0 is dropped and the
/// level above becomes the finest. So memory stays proportional to the spans (2 bytes each in a long row)
/// whatever the range of time, and a view finer than the leaves meets few spans per column, which are drawn
/// directly.
class DensityPyramid {
 public:
  /// Before the first append(): the row will be about this long. Leaves that would be too narrow for that are
  /// not begun, so that they need not be widened time after time.
  void expect(std::int64_t ns) noexcept;
  /// Adds busy time. The pieces of a row do not overlap and come in order of time. `counted`: a span begins
  /// with it; the rest of a span that began in an earlier stretch is not counted again.
  void append(std::int64_t begin_ns, std::int64_t end_ns, ev::EventKind kind, std::uint8_t code,
              bool counted = true);
  /// Brings the upper levels up to date after some append() calls; must run before add_to().
  void settle();
  [[nodiscard]] bool empty() const noexcept { return levels_[0].empty(); }
  /// Whether columns of this width can be answered from buckets.
  [[nodiscard]] bool covers(double column_ns) const noexcept { return covers(shift_, column_ns); }
  [[nodiscard]] static bool covers(unsigned shift, double column_ns) noexcept {
    return static_cast<int>(shift) <= widest(column_ns);
  }
  [[nodiscard]] unsigned shift() const noexcept { return shift_; }  ///< leaves are 2^shift ns wide
  /// Adds what it holds to `columns`. Shares of edge buckets are split by overlap.
  void add_to(const DensityColumns& columns) const;
  /// All of it.
  [[nodiscard]] DensityBucket total() const;
  void clear() { *this = DensityPyramid(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Writes the finest level that has at most `most` buckets; see docs/recording.md, "Blocks".
  void encode(ByteWriter& out, std::size_t most) const;
  /// Throws std::runtime_error on what encode() does not write.
  [[nodiscard]] static DensityPyramid decode(ByteReader& in);

 private:
  /// Shift of the widest buckets from which columns of this width can be answered; below 0: none can.
  [[nodiscard]] static int widest(double column_ns) noexcept;
  void coarsen();

  unsigned shift_ = 10;  ///< leaves of 1.024 us to begin with
  std::size_t spans_ = 0;
  std::int64_t base_ns_ = 0;                           ///< where the first leaf begins
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0;  ///< from base_ns_
  std::size_t dirty_ = SIZE_MAX;                       ///< first leaf whose parents are out of date
  std::vector<std::vector<DensityBucket>> levels_{1};
};

}  // namespace shardscope::store
