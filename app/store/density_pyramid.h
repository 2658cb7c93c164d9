// Levels of detail of one row of spans: busy time, number of begins and majority kind per power-of-two bucket
// of time. Grows with the row; a query's cost depends on its columns, not on the number of spans.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "app/store/bytes.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Sums over an interval of a row. `weight` is a weighted majority vote (Boyer and Moore, "MJRTY"): it
/// names the kind with more than half of the busy time exactly, and two votes can be merged.
struct DensityBucket {
  float busy_ns = 0;
  float weight = 0;  ///< never negative
  std::uint32_t begins = 0;
  std::uint32_t tag = 0;  ///< winner of the vote: kind and code

  [[nodiscard]] static constexpr std::uint32_t tag_of(ev::EventKind kind, std::uint8_t code) noexcept {
    return static_cast<std::uint32_t>(kind) << 8U | code;
  }
  [[nodiscard]] ev::EventKind kind() const noexcept { return static_cast<ev::EventKind>(tag >> 8U); }
  [[nodiscard]] std::uint8_t code() const noexcept { return static_cast<std::uint8_t>(tag); }

  /// Branch-free: the kinds of consecutive spans are as good as random, and a frame needs some hundred
  /// thousand votes.
  void vote(float busy, std::uint32_t its_tag) noexcept {
    const auto same = static_cast<std::uint32_t>(-static_cast<std::int32_t>(tag == its_tag));
    const auto wins = static_cast<std::uint32_t>(-static_cast<std::int32_t>((busy > weight) | (tag == 0)));
    const auto together = std::bit_cast<std::uint32_t>(weight + busy);
    const std::uint32_t apart = std::bit_cast<std::uint32_t>(weight - busy) & 0x7FFF'FFFFU;
    weight = std::bit_cast<float>((together & same) | (apart & ~same));
    tag ^= (tag ^ its_tag) & wins;
  }
  void merge(const DensityBucket& other) noexcept {
    busy_ns += other.busy_ns;
    begins += other.begins;
    vote(other.weight, other.tag);
  }
  /// A share of the bucket; `counted`: with the begins, which cannot be split.
  [[nodiscard]] DensityBucket part(float share, bool counted) const noexcept {
    return {.busy_ns = busy_ns * share, .weight = weight * share, .begins = counted ? begins : 0, .tag = tag};
  }
};

/// The columns of a view while they are filled: equal parts of [begin, end).
struct DensityColumns {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::span<DensityBucket> columns;
  /// Minimum number of a pyramid's buckets per column, so that splitting those at an edge is exact enough.
  double buckets_each = 2;

  [[nodiscard]] double width_ns() const noexcept {
    return static_cast<double>(end_ns - begin_ns) / static_cast<double>(columns.size());
  }
  /// Largest width of buckets that are precise enough.
  [[nodiscard]] double bucket_ns() const noexcept { return width_ns() / buckets_each; }
  /// Begin of column `i`; `i` == columns.size(): the end.
  [[nodiscard]] std::int64_t at(std::size_t i) const noexcept {
    return i >= columns.size() ? end_ns
                               : begin_ns + static_cast<std::int64_t>(width_ns() * static_cast<double>(i));
  }
  /// The column that holds `ns`, which lies in [begin, end).
  [[nodiscard]] std::size_t index(std::int64_t ns) const noexcept;
};

/// Adds spans to columns, fastest in order of time: the search begins at the last span's column.
class ColumnFiller {
 public:
  explicit ColumnFiller(const DensityColumns& out) noexcept : out_(out), width_ns_(out.width_ns()) {
    move_to(0);
  }
  /// Busy from `from_ns` to `to_ns`; `counted`: it begins here.
  void add(std::int64_t from_ns, std::int64_t to_ns, ev::EventKind kind, std::uint8_t code,
           bool counted) noexcept;

 private:
  /// As out_.at().
  [[nodiscard]] std::int64_t at(std::size_t i) const noexcept {
    return i >= out_.columns.size()
               ? out_.end_ns
               : out_.begin_ns + static_cast<std::int64_t>(width_ns_ * static_cast<double>(i));
  }
  void move_to(std::size_t column) noexcept;
  void step() noexcept;
  void seek(std::int64_t ns) noexcept;  ///< to the column that contains it

  const DensityColumns& out_;
  double width_ns_;
  std::size_t column_ = 0;
  std::int64_t left_ns_ = 0, right_ns_ = 0;  ///< edges of the column
};

/// [Note: adaptive leaf width]
/// Level 0 has buckets of 2^shift ns and every level above has buckets twice as wide. When the row would
/// need more leaves than a sixteenth of its spans (and more than a screen needs), level 0 is dropped and the
/// level above becomes the finest. So memory stays proportional to the spans (2 bytes each in a long row)
/// whatever the range of time, and a view finer than the leaves meets few spans per column, which are drawn
/// directly.
class DensityPyramid {
 public:
  /// Before the first append(): about how long the row will be. Leaves begin wide enough for it, so that they
  /// need not be widened again and again.
  void expect(std::int64_t ns) noexcept;
  /// Adds busy time. The pieces of a row do not overlap and come in order of time. `counted`: a span begins
  /// here; the continuation of a span that began in an earlier interval is not counted again.
  void append(std::int64_t begin_ns, std::int64_t end_ns, ev::EventKind kind, std::uint8_t code,
              bool counted = true);
  /// Adds another pyramid, whose interval lies after everything in this one. At most `most` leaves.
  void append(const DensityPyramid& stretch, std::size_t most);
  /// Updates the upper levels after append() calls; must run before add_to().
  void settle();
  [[nodiscard]] bool empty() const noexcept { return leaves_.empty(); }
  /// Whether columns that allow buckets of this width can be filled from this pyramid's.
  [[nodiscard]] bool covers(double bucket_ns) const noexcept { return covers(shift_, bucket_ns); }
  [[nodiscard]] static bool covers(unsigned shift, double bucket_ns) noexcept {
    return static_cast<int>(shift) <= widest(bucket_ns);
  }
  [[nodiscard]] unsigned shift() const noexcept { return shift_; }  ///< leaves are 2^shift ns wide
  /// Adds its buckets to `columns`; a few columns get finer ones than covers() requires. Shares of
  /// edge buckets are split by overlap.
  void add_to(const DensityColumns& columns) const { add_to(columns, Store::kBegin, Store::kEnd); }
  /// Only the part in [from, to).
  void add_to(const DensityColumns& columns, std::int64_t from_ns, std::int64_t to_ns) const;
  /// Sum of all buckets.
  [[nodiscard]] DensityBucket total() const;
  /// Drops the finest levels until at most `most` leaves are left, as far as there are wider ones.
  void drop_finer(std::size_t most);
  /// Removes [from, to), which is not known any more. Buckets at the edges keep the share that lies
  /// outside.
  void forget(std::int64_t from_ns, std::int64_t to_ns);
  void clear() { *this = DensityPyramid(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Default number of quantization steps of a stored bucket's shares. With many buckets fewer are enough,
  /// and take half the space.
  static constexpr std::uint32_t kSteps = 4095;
  /// Writes the finest level that has at most `most` buckets; see docs/recording.md, "Blocks".
  void encode(ByteWriter& out, std::size_t most, std::uint32_t steps = kSteps) const;
  /// Throws std::runtime_error on input that encode() does not write.
  enum class Levels : std::uint8_t { all, finest };  ///< finest: for few buckets and narrow columns
  [[nodiscard]] static DensityPyramid decode(ByteReader& in, Levels levels = Levels::all,
                                             std::uint32_t steps = kSteps);
  /// Skips what decode() would read, and rejects what it would reject.
  static void check(ByteReader& in);

 private:
  /// Decodes all but the buckets and returns their number.
  [[nodiscard]] std::size_t decode_range(ByteReader& in);
  [[nodiscard]] std::size_t level_count() const noexcept { return upper_.size() + 1; }
  [[nodiscard]] const std::vector<DensityBucket>& level(std::size_t i) const {
    return i == 0 ? leaves_ : upper_[i - 1];
  }
  /// Shift of the widest buckets that are not wider than this; below 0: none.
  [[nodiscard]] static int widest(double bucket_ns) noexcept;
  void coarsen();

  unsigned shift_ = 10;  ///< leaves of 1.024 us at first
  std::size_t spans_ = 0;
  std::int64_t base_ns_ = 0;                           ///< begin of the first leaf
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0;  ///< relative to base_ns_
  std::size_t dirty_ = SIZE_MAX;                       ///< first leaf whose parents are out of date
  std::vector<DensityBucket> leaves_;
  std::vector<std::vector<DensityBucket>> upper_;  ///< each half as long as the one before
};

}  // namespace shardscope::store
