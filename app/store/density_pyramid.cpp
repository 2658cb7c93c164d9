#include "app/store/density_pyramid.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardscope::store {
namespace {

// Leaves are 2^shift_ ns wide and counted from base_ns_; upper_[k] has buckets of 2^(shift_ + k + 1) ns.
constexpr std::size_t kMinLeaves = 256;     ///< of a sparse row; empty ones take nearly no space in a file
constexpr std::size_t kScreenLeaves = 512;  ///< about eight blocks on a screen; with fewer, spans are read
constexpr std::size_t kSpansPerLeaf = 16;
constexpr double kFewColumns = 32;
constexpr std::size_t kMaxStoredLeaves = 1U << 20;

/// `part` of `whole` in `steps` steps, rounded; at least 1 where it is not 0, so that it stays
/// visible.
std::uint64_t in_steps(float part, double whole, std::uint32_t steps) {
  if (part <= 0 || whole <= 0) return 0;
  const double most = steps;
  return static_cast<std::uint64_t>(std::clamp(most * part / whole + 0.5, 1.0, most));
}

}  // namespace

std::size_t DensityColumns::index(std::int64_t ns) const noexcept {
  auto i = static_cast<std::size_t>(static_cast<double>(ns - begin_ns) * static_cast<double>(columns.size()) /
                                    static_cast<double>(end_ns - begin_ns));
  i = std::min(i, columns.size() - 1);
  // at() rounds down: `ns` may be in the neighbour.
  while (i > 0 && at(i) > ns) --i;
  while (i + 1 < columns.size() && at(i + 1) <= ns) ++i;
  return i;
}

void ColumnFiller::move_to(std::size_t column) noexcept {
  column_ = column;
  left_ns_ = at(column);
  right_ns_ = at(column + 1);
}

void ColumnFiller::step() noexcept {
  ++column_;
  left_ns_ = right_ns_;
  right_ns_ = at(column_ + 1);
}

// Spans come in order of time, so the next is usually near: up to kNear steps are cheaper than a division.
void ColumnFiller::seek(std::int64_t ns) noexcept {
  constexpr int kNear = 8;
  if (ns < left_ns_) return move_to(out_.index(ns));
  for (int steps = 0; right_ns_ <= ns && column_ + 1 < out_.columns.size(); ++steps) {
    if (steps == kNear) return move_to(out_.index(ns));
    step();
  }
}

void ColumnFiller::add(std::int64_t from_ns, std::int64_t to_ns, ev::EventKind kind, std::uint8_t code,
                       bool counted) noexcept {
  // A span that began before the view is drawn in it but not counted.
  counted = counted && from_ns >= out_.begin_ns;
  const std::int64_t from = std::max(from_ns, out_.begin_ns);
  const std::int64_t to = std::min(to_ns, out_.end_ns);
  if (to < from || from >= out_.end_ns || (to == from && from_ns != to_ns)) return;
  const std::uint32_t tag = DensityBucket::tag_of(kind, code);
  seek(from);
  for (;; step()) {
    DensityBucket& column = out_.columns[column_];
    const std::int64_t left = std::max(from, left_ns_);
    const std::int64_t right = std::min(to, right_ns_);
    const auto busy = static_cast<float>(std::max<std::int64_t>(right - left, 0));
    column.busy_ns += busy;
    // A span of length 0 votes with 1 ns, so that the column has a kind.
    column.vote(std::max(busy, 1.0F), tag);
    if (counted) ++column.begins;
    counted = false;
    if (to <= right_ns_ || column_ + 1 == out_.columns.size()) return;
  }
}

void DensityPyramid::expect(std::int64_t ns) noexcept {
  while (empty() && ns >> shift_ >= static_cast<std::int64_t>(kScreenLeaves)) ++shift_;
}

// Doubles the leaf width: the level above becomes the leaves, exactly, because parents are sums.
void DensityPyramid::coarsen() {
  settle();
  // A single leaf becomes wider with the same content.
  if (!upper_.empty()) {
    leaves_ = std::move(upper_.front());
    upper_.erase(upper_.begin());
  }
  ++shift_;
}

void DensityPyramid::append(std::int64_t begin_ns, std::int64_t end_ns, ev::EventKind kind, std::uint8_t code,
                            bool counted) {
  if (leaves_.empty()) base_ns_ = begin_ns;
  begin_ns = std::max<std::int64_t>(begin_ns - base_ns_, 0);
  end_ns = std::max(end_ns - base_ns_, begin_ns);
  const std::int64_t last_ns = std::max(begin_ns, end_ns - 1);
  if (spans_ == 0) first_begin_ns_ = begin_ns;
  last_end_ns_ = std::max(last_end_ns_, last_ns + 1);
  ++spans_;
  // Few spans over a long time stay within kMinLeaves; many get a leaf for every kSpansPerLeaf.
  const std::size_t most = std::max({kMinLeaves, std::min(spans_, kScreenLeaves), spans_ / kSpansPerLeaf});
  while (static_cast<std::size_t>(last_ns >> shift_) >= most) coarsen();

  const auto first = static_cast<std::size_t>(begin_ns >> shift_);
  const auto last = static_cast<std::size_t>(last_ns >> shift_);
  std::vector<DensityBucket>& leaves = leaves_;
  if (leaves.size() <= last) leaves.resize(last + 1);
  if (counted) ++leaves[first].begins;
  for (std::size_t i = first; i <= last; ++i) {
    const std::int64_t from = std::max(begin_ns, static_cast<std::int64_t>(i) << shift_);
    const std::int64_t to = std::min(end_ns, (static_cast<std::int64_t>(i) + 1) << shift_);
    const auto busy = static_cast<float>(to - from);
    leaves[i].busy_ns += busy;
    leaves[i].vote(std::max(busy, 1.0F), DensityBucket::tag_of(kind, code));
  }
  dirty_ = std::min(dirty_, first);
}

// Sums from the first leaf that changed: appends are at the end, so this is usually one bucket per level.
void DensityPyramid::settle() {
  if (dirty_ == SIZE_MAX) return;
  std::size_t first = dirty_;
  dirty_ = SIZE_MAX;
  for (std::size_t i = 0; level(i).size() > 1; ++i) {
    if (i == upper_.size()) {
      upper_.emplace_back();
      first = 0;
    }
    const std::vector<DensityBucket>& children = level(i);
    std::vector<DensityBucket>& parents = upper_[i];
    const std::size_t count = (children.size() + 1) / 2;
    // A new level, or one shorter than the level below, is filled from its end on.
    first = std::min(first / 2, parents.size());
    parents.resize(count);
    for (std::size_t p = first; p < count; ++p) {
      parents[p] = children[2 * p];
      if (2 * p + 1 < children.size()) parents[p].merge(children[2 * p + 1]);
    }
  }
}

void DensityPyramid::append(const DensityPyramid& stretch, std::size_t most) {
  if (stretch.empty()) return;
  const std::int64_t held_begin = stretch.base_ns_ + stretch.first_begin_ns_;
  const std::int64_t held_end = stretch.base_ns_ + stretch.last_end_ns_;
  // Starts with the resolution of the first one, and gets coarser as the row grows.
  if (leaves_.empty()) {
    shift_ = stretch.shift_;
    base_ns_ = held_begin;
  }
  // Intervals of a lane are consecutive; otherwise the part before the base counts at the base.
  const auto from_base = [&](std::int64_t ns) { return std::max<std::int64_t>(ns - base_ns_, 0); };
  last_end_ns_ = std::max({last_end_ns_, from_base(held_end), std::int64_t{1}});
  while (static_cast<std::size_t>((last_end_ns_ - 1) >> shift_) >= most) coarsen();
  const auto last_leaf = static_cast<std::size_t>((last_end_ns_ - 1) >> shift_);
  if (leaves_.size() <= last_leaf) leaves_.resize(last_leaf + 1);
  for (std::size_t i = 0; i < stretch.leaves_.size(); ++i) {
    const DensityBucket& bucket = stretch.leaves_[i];
    if (bucket.busy_ns <= 0 && bucket.begins == 0) continue;
    const std::int64_t at = stretch.base_ns_ + (static_cast<std::int64_t>(i) << stretch.shift_);
    const std::int64_t begin = from_base(std::max(at, held_begin));
    const std::int64_t end =
        std::max(from_base(std::min(at + (std::int64_t{1} << stretch.shift_), held_end)), begin + 1);
    const auto first = static_cast<std::size_t>(begin >> shift_);
    const std::size_t last = std::min(static_cast<std::size_t>((end - 1) >> shift_), last_leaf);
    spans_ += bucket.begins;
    dirty_ = std::min(dirty_, first);
    // Within one leaf: as a whole. Else each leaf gets its share of the time, and the first gets the begins.
    if (first >= last) {
      leaves_[last].merge(bucket);
      continue;
    }
    const float per_ns = 1.0F / static_cast<float>(end - begin);
    for (std::size_t leaf = first; leaf <= last; ++leaf) {
      const std::int64_t left = std::max(begin, static_cast<std::int64_t>(leaf) << shift_);
      const std::int64_t right = std::min(end, (static_cast<std::int64_t>(leaf) + 1) << shift_);
      leaves_[leaf].merge(bucket.part(static_cast<float>(right - left) * per_ns, leaf == first));
    }
  }
}

int DensityPyramid::widest(double bucket_ns) noexcept { return bucket_ns < 1 ? -1 : std::ilogb(bucket_ns); }

DensityBucket DensityPyramid::total() const {
  if (!upper_.empty() && upper_.back().size() == 1) return upper_.back().front();
  DensityBucket out;
  for (const DensityBucket& bucket : leaves_) out.merge(bucket);
  return out;
}

void DensityPyramid::drop_finer(std::size_t most) {
  while (leaves_.size() > most && !upper_.empty()) coarsen();
}

// Busy time is removed in proportion: times within a leaf are unknown.
void DensityPyramid::forget(std::int64_t from_ns, std::int64_t to_ns) {
  const std::int64_t from = std::max(from_ns, base_ns_) - base_ns_;
  const std::int64_t to = std::min(to_ns, base_ns_ + last_end_ns_) - base_ns_;
  if (empty() || from >= to) return;
  const auto first = static_cast<std::size_t>(from >> shift_);
  const std::size_t last = std::min(static_cast<std::size_t>((to - 1) >> shift_), leaves_.size() - 1);
  const float per_ns = 1.0F / static_cast<float>(std::int64_t{1} << shift_);
  for (std::size_t i = first; i <= last; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) << shift_;
    const std::int64_t lost = std::min(to, at + (std::int64_t{1} << shift_)) - std::max(from, at);
    const float share = 1.0F - static_cast<float>(lost) * per_ns;
    if (share <= 0) {
      leaves_[i] = {};
      continue;
    }
    const auto begins = static_cast<std::uint32_t>(static_cast<float>(leaves_[i].begins) * share);
    leaves_[i] = leaves_[i].part(share, false);
    leaves_[i].begins = begins;
  }
  dirty_ = std::min(dirty_, first);
}

void DensityPyramid::add_to(const DensityColumns& out, std::int64_t from_ns, std::int64_t to_ns) const {
  const std::int64_t held_begin = std::max(base_ns_ + first_begin_ns_, from_ns);
  const std::int64_t held_end = std::min(base_ns_ + last_end_ns_, to_ns);
  const bool cut = from_ns > base_ns_ + first_begin_ns_;
  if (empty() || out.columns.empty() || held_begin >= out.end_ns || held_end <= out.begin_ns ||
      held_begin >= held_end) {
    return;
  }
  const double width = out.width_ns();
  // With few columns, levels for kFewColumns are used: the edge of one wide column
  // would otherwise be split within half of it.
  const double finer = std::max(1.0, kFewColumns / static_cast<double>(out.columns.size()));
  const int widest_shift = widest(out.bucket_ns() / finer);
  // The coarsest level with sufficiently narrow buckets: the fewest to merge.
  std::size_t chosen = 0;
  while (chosen + 1 < level_count() && !level(chosen + 1).empty() &&
         static_cast<int>(shift_ + chosen + 1) <= widest_shift) {
    ++chosen;
  }
  const DensityBucket* const buckets = level(chosen).data();
  const unsigned shift = shift_ + static_cast<unsigned>(chosen);
  const std::int64_t bucket_ns = std::int64_t{1} << shift;
  const float per_ns = 1.0F / static_cast<float>(bucket_ns);

  // A bucket in two columns is split between them; the first and the last contain nothing outside
  // the row's own range.
  const auto part_of = [&](std::int64_t i, std::int64_t from, std::int64_t to) {
    const std::int64_t at = i << shift;
    if (at >= first_begin_ns_ && at + bucket_ns <= last_end_ns_)
      return static_cast<float>(to - from) * per_ns;
    const std::int64_t held_from = std::max(at, first_begin_ns_);
    const std::int64_t held_to = std::min(at + bucket_ns, last_end_ns_);
    return static_cast<float>(std::min(to, held_to) - std::max(from, held_from)) /
           static_cast<float>(held_to - held_from);
  };
  // Begins count in the column in which the bucket comes into view.
  const auto share = [&](DensityBucket& sum, std::int64_t i, std::int64_t from, std::int64_t to,
                         bool counted) { sum.merge(buckets[i].part(part_of(i, from, to), counted)); };
  const std::size_t first_column = out.index(std::max(held_begin, out.begin_ns));
  const std::size_t last_column = out.index(std::min(held_end, out.end_ns) - 1);
  const auto begin_of = [&](std::size_t c) {  // as out.at(), from base_ns_
    const std::int64_t at_ns = c >= out.columns.size()
                                   ? out.end_ns
                                   : out.begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c));
    return at_ns - base_ns_;
  };
  std::int64_t to = begin_of(first_column);
  for (std::size_t c = first_column; c <= last_column; ++c) {
    const std::int64_t from = to;
    to = begin_of(c + 1);
    const std::int64_t lo = std::max(from, held_begin - base_ns_);
    const std::int64_t hi = std::min(to, held_end - base_ns_);
    if (lo >= hi) continue;
    const bool begins_here = c == first_column && !cut;
    DensityBucket sum = out.columns[c];
    std::int64_t i = lo >> shift;
    const std::int64_t last = (hi - 1) >> shift;
    const std::int64_t at = i << shift;
    if (i == last) {
      share(sum, i, lo, hi, at >= lo || begins_here);
    } else {
      // A bucket cut at the left, whole ones, one cut at the right.
      if (at < lo) {
        share(sum, i, lo, at + bucket_ns, at >= lo || begins_here);
        ++i;
      }
      for (; i < last; ++i) sum.merge(buckets[i]);
      if ((last + 1) << shift == hi) {
        sum.merge(buckets[last]);
      } else {
        share(sum, last, last << shift, hi, true);
      }
    }
    out.columns[c] = sum;
  }
}

std::size_t DensityPyramid::bytes() const noexcept {
  std::size_t bytes = leaves_.capacity() * sizeof(DensityBucket) + upper_.capacity() * sizeof upper_[0];
  for (const auto& level : upper_) bytes += level.capacity() * sizeof(DensityBucket);
  return bytes;
}

void DensityPyramid::encode(ByteWriter& out, std::size_t most, std::uint32_t steps) const {
  std::size_t chosen = 0;
  while (chosen + 1 < level_count() && level(chosen).size() > most) ++chosen;
  const std::vector<DensityBucket>& buckets = level(chosen);
  // Count, shift, base (ns, zigzag), first begin and last end (ns from the base); then the columns begins,
  // busy, weight (both in `steps` steps of a bucket's width) and tag, each one varint per bucket: equal ones
  // compress.
  out.varint(buckets.size());
  if (buckets.empty()) return;
  const unsigned shift = shift_ + static_cast<unsigned>(chosen);
  out.varint(shift);
  out.varint(zigzag(base_ns_));
  out.varint(static_cast<std::uint64_t>(first_begin_ns_));
  out.varint(static_cast<std::uint64_t>(last_end_ns_));
  const double width = std::ldexp(1.0, static_cast<int>(shift));
  for (const DensityBucket& bucket : buckets) out.varint(bucket.begins);
  for (const DensityBucket& bucket : buckets) out.varint(in_steps(bucket.busy_ns, width, steps));
  // A span of length 0 votes with 1 ns, so that it has a kind.
  for (const DensityBucket& bucket : buckets) out.varint(in_steps(bucket.weight, width, steps));
  for (const DensityBucket& bucket : buckets) out.varint(bucket.tag);
}

std::size_t DensityPyramid::decode_range(ByteReader& in) {
  in.now_reading("level of detail");
  const std::uint64_t count = in.varint();
  if (count == 0) return 0;
  if (count > kMaxStoredLeaves || count > in.left()) in.fail("has more buckets than bytes");
  shift_ = static_cast<unsigned>(in.varint());
  base_ns_ = unzigzag(in.varint());
  first_begin_ns_ = static_cast<std::int64_t>(in.varint());
  last_end_ns_ = static_cast<std::int64_t>(in.varint());
  // So that no later sum of a base, an end and a bucket's width overflows.
  constexpr std::int64_t kMaxNs = std::int64_t{1} << 62;
  if (shift_ > 62 || first_begin_ns_ < 0 || last_end_ns_ <= first_begin_ns_ || last_end_ns_ > kMaxNs / 2 ||
      base_ns_ > kMaxNs || base_ns_ < -kMaxNs ||
      static_cast<std::uint64_t>((last_end_ns_ - 1) >> shift_) != count - 1) {
    in.fail("has buckets that do not fit its time");
  }
  return count;
}

void DensityPyramid::check(ByteReader& in) {
  constexpr std::size_t kColumns = 4;
  in.varints(kColumns * DensityPyramid().decode_range(in), [](std::uint64_t) {});
}

DensityPyramid DensityPyramid::decode(ByteReader& in, Levels levels, std::uint32_t steps) {
  DensityPyramid out;
  const std::size_t count = out.decode_range(in);
  if (count == 0) return out;
  std::vector<DensityBucket>& leaves = out.leaves_;
  leaves.resize(count);
  const double quantum = std::ldexp(1.0, static_cast<int>(out.shift_)) / steps;
  DensityBucket* next = leaves.data();
  in.varints(count, [&](std::uint64_t value) {
    next->begins = static_cast<std::uint32_t>(value);
    out.spans_ += next++->begins;
  });
  next = leaves.data();
  in.varints(count, [&](std::uint64_t value) {
    next++->busy_ns = static_cast<float>(quantum * static_cast<double>(value));
  });
  next = leaves.data();
  in.varints(count, [&](std::uint64_t value) {
    next++->weight = static_cast<float>(quantum * static_cast<double>(value));
  });
  next = leaves.data();
  in.varints(count,
             [&](std::uint64_t value) { next++->tag = static_cast<std::uint32_t>(value & 0xFF'FFFFU); });
  if (levels == Levels::finest) return out;
  out.dirty_ = 0;
  out.settle();
  return out;
}

}  // namespace shardscope::store
