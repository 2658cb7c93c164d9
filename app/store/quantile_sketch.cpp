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
/// Of the largest time there is.
// ln(2^63) / ln(g) is 1092 with g = 1.02 / 0.98; rounded up, so that a library's rounding of log() cannot
// reach it.
constexpr std::int32_t kMostIndex = 1200;

// For ns >= 1, so from 0 up: ln(1) is 0.
std::int32_t index_of(std::int64_t ns) noexcept {
  static const double per_log = 1 / std::log(kGrowth);
  return static_cast<std::int32_t>(std::ceil(std::log(static_cast<double>(ns)) * per_log));
}

/// Of all values in the bucket the one that is nearest to each of them, relatively.
double value_of(std::int32_t index) noexcept { return 2 * std::pow(kGrowth, index) / (kGrowth + 1); }

/// Of files that say so there may be more than can be counted.
std::uint64_t saturated(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

// Sorted by index, and few: 1,093 cover every time there is, so that inserting in the middle is cheap enough.
QuantileSketch::Bucket& QuantileSketch::bucket(std::int32_t index) {
  const auto at = std::ranges::lower_bound(buckets_, index, {}, &Bucket::index);
  if (at != buckets_.end() && at->index == index) return *at;
  return *buckets_.insert(at, {index, 0});
}

void QuantileSketch::add(std::int64_t ns, std::uint64_t times) {
  if (times == 0) return;
  // count_ == 0 says that there is no minimum yet: 0 would be one.
  min_ns_ = count_ == 0 ? ns : std::min(min_ns_, ns);
  max_ns_ = count_ == 0 ? ns : std::max(max_ns_, ns);
  count_ = saturated(count_, times);
  // The logarithm has no place for these: counted apart, below all buckets.
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
  // Bucket borders depend on kError alone, so that sums of sketches are exact: the same as of a sketch of all
  // values.
  for (const Bucket& one : other.buckets_) {
    std::uint64_t& count = bucket(one.index).count;
    count = saturated(count, one.count);
  }
}

double QuantileSketch::quantile(double q) const {
  // From 0: the value with `rank` values below it. `count_ - 1`: at least one value, as the header asks.
  const auto rank = static_cast<std::uint64_t>(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1));
  // Values without a logarithm: the minimum stands for all of them, where it is below 0.
  if (rank < zeros_) return static_cast<double>(std::min<std::int64_t>(min_ns_, 0));
  std::uint64_t below = zeros_;
  for (const Bucket& one : buckets_) {
    below = saturated(below, one.count);
    if (rank < below)
      // Minimum and maximum are exact, a bucket's representative may lie beyond them.
      return std::clamp(value_of(one.index), static_cast<double>(min_ns_), static_cast<double>(max_ns_));
  }
  // Reached only where the number of values is large enough that the rank is rounded up as a double, or
  // counts are saturated.
  return static_cast<double>(max_ns_);
}

// Version, minimum, maximum, zeros, number of buckets, then for each the step from the index before and the
// count. count_ is the sum of these and is not written.
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
  // Each has two bytes at least: no more is looped over than the bytes could hold.
  if (buckets > in.left()) in.fail("has more buckets than bytes");
  std::int64_t index = 0;
  for (std::uint64_t i = 0; i < buckets; ++i) {
    const std::uint64_t step = in.varint();
    // Before the addition, so that `index` cannot overflow. A step of 0 would be the same bucket twice.
    if (step > kMostIndex || (i > 0 && step == 0)) in.fail("has buckets out of order");
    index += static_cast<std::int64_t>(step);
    if (index > kMostIndex) in.fail("has buckets of times that cannot be");
    const std::uint64_t count = in.varint();
    // Refused here, while add() and merge() saturate: encode() wrote numbers that add up.
    if (count > std::numeric_limits<std::uint64_t>::max() - out.count_) in.fail("counts more than can be");
    out.buckets_.push_back({static_cast<std::int32_t>(index), count});
    out.count_ += count;
  }
  if (out.count_ == 0) in.fail("counts nothing");
  if (in.left() != 0) in.fail("is followed by bytes that mean nothing");
  return out;
}

}  // namespace shardscope::store
