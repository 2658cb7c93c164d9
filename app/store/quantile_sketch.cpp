#include "app/store/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/store/bytes.h"
#include "app/store/packed.h"

namespace shardscope::store {
namespace {

constexpr std::uint8_t kSketchVersion = 1;
// Buckets are (g^(i-1), g^i]. With the representative 2 g^i / (g + 1) both ends of a bucket are at a relative
// distance of (g - 1) / (g + 1), which is kError for this g.
constexpr double kGrowth = (1 + QuantileSketch::kError) / (1 - QuantileSketch::kError);
/// Bound on the index of the largest time.
// ln(2^63) / ln(g) is 1092 with g = 1.02 / 0.98; rounded up, so that a library's rounding of log() cannot
// reach it.
constexpr std::int32_t kMostIndex = 1200;

// For ns >= 1, so from 0 up: ln(1) is 0.
std::int32_t index_of(std::int64_t ns) noexcept {
  static const double per_log = 1 / std::log(kGrowth);
  return static_cast<std::int32_t>(std::ceil(std::log(static_cast<double>(ns)) * per_log));
}

/// The value with the smallest relative distance to all values of the bucket.
double value_of(std::int32_t index) noexcept { return 2 * std::pow(kGrowth, index) / (kGrowth + 1); }

/// Counts of a forged file may add up to more than 64 bits.
std::uint64_t saturated(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

// Sorted by index, and few: 1,093 cover all times, so that inserting in the middle is cheap enough.
QuantileSketch::Bucket& QuantileSketch::bucket(std::int32_t index) {
  const auto at = std::ranges::lower_bound(buckets_, index, {}, &Bucket::index);
  if (at != buckets_.end() && at->index == index) return *at;
  return *buckets_.insert(at, {index, 0});
}

void QuantileSketch::add(std::int64_t ns, std::uint64_t times) {
  if (times == 0) return;
  // count_ == 0 means that there is no minimum yet: 0 would be one.
  min_ns_ = count_ == 0 ? ns : std::min(min_ns_, ns);
  max_ns_ = count_ == 0 ? ns : std::max(max_ns_, ns);
  count_ = saturated(count_, times);
  // Values without a logarithm are counted separately, below all buckets.
  if (ns <= 0) {
    zeros_ = saturated(zeros_, times);
  } else {
    std::uint64_t& count = bucket(index_of(ns)).count;
    count = saturated(count, times);
  }
}

void QuantileSketch::merge(const QuantileSketch& other) {
  // Its minimum and maximum are not set.
  if (other.count_ == 0) return;
  min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
  max_ns_ = count_ == 0 ? other.max_ns_ : std::max(max_ns_, other.max_ns_);
  count_ = saturated(count_, other.count_);
  zeros_ = saturated(zeros_, other.zeros_);
  // Bucket bounds depend on kError alone, so that merged sketches are exact: equal to a sketch of all
  // values.
  for (const Bucket& one : other.buckets_) {
    std::uint64_t& count = bucket(one.index).count;
    count = saturated(count, one.count);
  }
}

double QuantileSketch::quantile(double q) const {
  // From 0: the number of smaller values. `count_ - 1`: needs at least one value, see the header.
  const auto rank = static_cast<std::uint64_t>(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1));
  // Values without a logarithm: the minimum represents all of them, where it is below 0.
  if (rank < zeros_) return static_cast<double>(std::min<std::int64_t>(min_ns_, 0));
  std::uint64_t below = zeros_;
  for (const Bucket& one : buckets_) {
    below = saturated(below, one.count);
    if (rank < below)
      // Minimum and maximum are exact, while a bucket's representative may exceed them.
      return std::clamp(value_of(one.index), static_cast<double>(min_ns_), static_cast<double>(max_ns_));
  }
  // Reached only where the count is so large that the rank is rounded up as a double, or
  // counts are saturated.
  return static_cast<double>(max_ns_);
}

// Version, minimum, maximum, zeros, number of buckets, then for each the difference to the last index and
// the count. count_ is the sum of these and is not stored.
std::vector<std::byte> QuantileSketch::encode() const {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.fixed(kSketchVersion);
  out.varint(zigzag(min_ns_));
  out.varint(zigzag(max_ns_));
  out.varint(zeros_);
  out.varint(buckets_.size());
  std::int32_t before = 0;
  for (const Bucket& one : buckets_) {
    // Ascending, so never negative. The first is the index itself.
    out.varint(static_cast<std::uint64_t>(one.index - before));
    out.varint(one.count);
    before = one.index;
  }
  return bytes;
}

QuantileSketch QuantileSketch::decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes.data(), bytes.size(), "distribution");
  if (in.fixed<std::uint8_t>() != kSketchVersion) in.fail("has a version that this program does not know");
  QuantileSketch out;
  out.min_ns_ = unzigzag(in.varint());
  out.max_ns_ = unzigzag(in.varint());
  out.count_ = out.zeros_ = in.varint();
  const std::uint64_t buckets = in.varint();
  // Each has two bytes at least: bounds the loop by the number of bytes.
  if (buckets > in.left()) in.fail("has more buckets than bytes");
  std::int64_t index = 0;
  for (std::uint64_t i = 0; i < buckets; ++i) {
    const std::uint64_t step = in.varint();
    // Before the addition, so that `index` cannot overflow. A step of 0 would repeat the same bucket.
    if (step > kMostIndex || (i > 0 && step == 0)) in.fail("has buckets out of order");
    index += static_cast<std::int64_t>(step);
    if (index > kMostIndex) in.fail("has buckets of times that cannot be");
    const std::uint64_t count = in.varint();
    // Rejected here, while add() and merge() saturate: encode() wrote counts that add up.
    if (count > std::numeric_limits<std::uint64_t>::max() - out.count_) in.fail("counts more than can be");
    out.buckets_.push_back({static_cast<std::int32_t>(index), count});
    out.count_ += count;
  }
  if (out.count_ == 0) in.fail("counts nothing");
  if (in.left() != 0) in.fail("is followed by bytes that mean nothing");
  return out;
}

}  // namespace shardscope::store
