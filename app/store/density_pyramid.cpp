#include "app/store/density_pyramid.h"

#include <algorithm>
#include <cmath>

namespace shardscope::store {
namespace {

constexpr std::size_t kMinLeaves = 1024;
constexpr std::size_t kScreenLeaves = 8192;  ///< enough for the whole run on a wide screen
constexpr std::size_t kSpansPerLeaf = 4;
constexpr double kBucketsPerColumn = 2;  ///< at least this many, so that splitting edges is exact enough

}  // namespace

void DensityPyramid::vote(Bucket& bucket, float weight, ev::EventKind kind, std::uint8_t code) noexcept {
  if (bucket.kind == kind && bucket.code == code) {
    bucket.weight += weight;
  } else if (weight > bucket.weight) {
    bucket.kind = kind;
    bucket.code = code;
    bucket.weight = weight - bucket.weight;
  } else {
    bucket.weight -= weight;
  }
}

DensityPyramid::Bucket DensityPyramid::merged(const Bucket& left, const Bucket& right) noexcept {
  Bucket out = left;
  out.busy_ns += right.busy_ns;
  out.begins += right.begins;
  if (right.weight > 0) vote(out, right.weight, right.kind, right.code);
  return out;
}

void DensityPyramid::coarsen() {
  settle();
  if (levels_.size() == 1) levels_.emplace_back();
  levels_.erase(levels_.begin());
  ++shift_;
}

void DensityPyramid::append(std::int64_t begin_ns, std::int64_t end_ns, ev::EventKind kind,
                            std::uint8_t code) {
  begin_ns = std::max<std::int64_t>(begin_ns, 0);
  end_ns = std::max(end_ns, begin_ns);
  const std::int64_t last_ns = std::max(begin_ns, end_ns - 1);
  if (spans_ == 0) first_begin_ns_ = begin_ns;
  last_end_ns_ = last_ns + 1;
  ++spans_;
  const std::size_t most = std::max({kMinLeaves, std::min(spans_, kScreenLeaves), spans_ / kSpansPerLeaf});
  while (static_cast<std::size_t>(last_ns >> shift_) >= most) coarsen();

  const auto first = static_cast<std::size_t>(begin_ns >> shift_);
  const auto last = static_cast<std::size_t>(last_ns >> shift_);
  std::vector<Bucket>& leaves = levels_[0];
  if (leaves.size() <= last) leaves.resize(last + 1);
  ++leaves[first].begins;
  for (std::size_t i = first; i <= last; ++i) {
    const std::int64_t from = std::max(begin_ns, static_cast<std::int64_t>(i) << shift_);
    const std::int64_t to = std::min(end_ns, (static_cast<std::int64_t>(i) + 1) << shift_);
    const auto busy = static_cast<float>(to - from);
    leaves[i].busy_ns += busy;
    vote(leaves[i], std::max(busy, 1.0F), kind, code);
  }
  dirty_ = std::min(dirty_, first);
}

void DensityPyramid::settle() {
  if (dirty_ == SIZE_MAX) return;
  std::size_t first = dirty_;
  dirty_ = SIZE_MAX;
  for (std::size_t level = 0; levels_[level].size() > 1; ++level) {
    if (level + 1 == levels_.size()) {
      levels_.emplace_back();
      first = 0;
    }
    const std::vector<Bucket>& children = levels_[level];
    std::vector<Bucket>& parents = levels_[level + 1];
    const std::size_t count = (children.size() + 1) / 2;
    // A level that was just begun, or that is shorter than what lies below, is filled from where it ends.
    first = std::min(first / 2, parents.size());
    parents.resize(count);
    for (std::size_t i = first; i < count; ++i) {
      const Bucket right = 2 * i + 1 < children.size() ? children[2 * i + 1] : Bucket{};
      parents[i] = merged(children[2 * i], right);
    }
  }
}

bool DensityPyramid::covers(double column_ns) const noexcept {
  return std::ldexp(1.0, static_cast<int>(shift_)) * kBucketsPerColumn <= column_ns;
}

void DensityPyramid::columns(std::int64_t begin_ns, std::int64_t end_ns, std::span<Density> columns) const {
  const double width = static_cast<double>(end_ns - begin_ns) / static_cast<double>(columns.size());
  std::size_t level = 0;
  while (level + 1 < levels_.size() &&
         std::ldexp(1.0, static_cast<int>(shift_ + level + 1)) * kBucketsPerColumn <= width) {
    ++level;
  }
  const std::vector<Bucket>& buckets = levels_[level];
  const unsigned shift = shift_ + static_cast<unsigned>(level);
  const std::int64_t bucket_ns = std::int64_t{1} << shift;

  std::int64_t from = begin_ns;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::int64_t to = c + 1 == columns.size()
                                ? end_ns
                                : begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c + 1));
    const std::int64_t lo = std::max(from, first_begin_ns_);
    const std::int64_t hi = std::min(to, last_end_ns_);
    Bucket sum;
    for (std::int64_t i = lo >> shift; lo < hi && i <= (hi - 1) >> shift; ++i) {
      const Bucket& bucket = buckets[static_cast<std::size_t>(i)];
      const std::int64_t at = i << shift;
      if (at >= lo && at + bucket_ns <= hi) {  // whole: most of them, and without a division
        sum.busy_ns += bucket.busy_ns;
        sum.begins += bucket.begins;
        if (bucket.weight > 0) vote(sum, bucket.weight, bucket.kind, bucket.code);
        continue;
      }
      // The first and last bucket hold nothing outside the row's own range.
      const std::int64_t held_from = std::max(at, first_begin_ns_);
      const std::int64_t held_to = std::min(at + bucket_ns, last_end_ns_);
      const std::int64_t overlap = std::min(hi, held_to) - std::max(lo, held_from);
      const float share = static_cast<float>(overlap) / static_cast<float>(held_to - held_from);
      sum.busy_ns += bucket.busy_ns * share;
      if (bucket.weight > 0) vote(sum, bucket.weight * share, bucket.kind, bucket.code);
      // Begins cannot be split; they belong to the column in which the bucket comes into view.
      if (std::max(at, begin_ns) >= from) sum.begins += bucket.begins;
    }
    Density& out = columns[c];
    const auto span_ns = static_cast<float>(std::max<std::int64_t>(to - from, 1));
    out.busy = std::min(1.0F, sum.busy_ns / span_ns);
    out.count = std::max(sum.begins, sum.busy_ns > 0 ? 1U : 0U);
    out.dominant = sum.kind;
    out.dominant_code = sum.code;
    from = to;
  }
}

void DensityPyramid::clear() { *this = DensityPyramid(); }

std::size_t DensityPyramid::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& level : levels_) bytes += level.capacity() * sizeof(Bucket);
  return bytes;
}

}  // namespace shardscope::store
