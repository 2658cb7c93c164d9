// A lane's rows over all blocks: levels of detail of the whole row, which fill wide columns at a cost
// independent of the number of blocks; and per block and per 64 blocks their intervals and
// sums. Kept apart from the blocks, because a view goes over all of them and blocks are large.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

class RowSums {
 public:
  static constexpr std::size_t kGroup = 64;
  /// About the number that a block has, so that the next finer buckets are the blocks'.
  static constexpr std::size_t kLeavesPerBlock = 16, kMinLeaves = 1024;
  /// Leaves of a row that is built from finer ones: two for each of 2,000 columns, more with few
  /// blocks, of which a view needs twice that number (RankRun::density()).
  static constexpr std::size_t kMinFineLeaves = 4096, kFewBlocks = 16;
  /// Before append(), in a live run: adds the block's finest levels of detail while they are in memory. So
  /// views of the whole run are drawn from here from the first blocks on. At least `least` leaves are kept.
  void append_fine(const Lane& lane, const DensityPyramid& waits, std::size_t least) {
    const std::size_t blocks = begins_.size() + 1;
    const std::size_t leaves = std::max(blocks <= kFewBlocks ? 2 * least : least, kLeavesPerBlock * blocks);
    const auto add_row = [&](Row& row, const DensityPyramid& stretch) {
      row.levels.append(stretch, leaves);
      row.levels.settle();  // so that the next frame need not do it for many blocks
    };
    add_row(waits_, waits);
    if (rows_.size() < lane.depth_count()) rows_.resize(lane.depth_count());
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) add_row(rows_[d], lane.pyramid(d));
    fine_taken_ = true;
  }
  /// Adds the next block's part of the lane, which begins at `begin_ns`. `waits`: of the lane, may be empty.
  void append(const BlockLane& lane, const DensityPyramid& waits, std::int64_t begin_ns) {
    const std::size_t leaves = std::max(kMinLeaves, kLeavesPerBlock * (begins_.size() + 1));
    const auto add_row = [&](Row& row, const DensityPyramid& stretch, std::uint8_t fine) {
      row.blocks.resize(begins_.size() + 1);
      row.groups.resize((evicted_ + begins_.size()) / kGroup + 1);
      row.shifts.resize(begins_.size() + 1, kNone);
      row.fine.resize(begins_.size() + 1, kNone);
      if (stretch.empty()) return;
      row.shifts.back() = static_cast<std::uint8_t>(stretch.shift());
      row.fine.back() = fine;
      row.blocks.back() = stretch.total();
      row.groups.back().merge(row.blocks.back());
      if (fine_taken_) return;
      row.levels.append(stretch, leaves);
    };
    add_row(waits_, waits, kNone);
    if (rows_.size() < lane.rows.size()) rows_.resize(lane.rows.size());
    for (std::size_t d = 0; d < lane.rows.size(); ++d) add_row(rows_[d], lane.rows[d], lane.fine[d]);
    begins_.push_back(begin_ns);
    ends_.push_back(lane.end_ns);
    fine_taken_ = false;
  }
  /// After the last of many blocks, so that the first frame need not do it.
  void settle() const {
    waits_.levels.settle();
    for (const Row& row : rows_) row.levels.settle();
  }
  /// Block `i` is damaged: removes what it added.
  void forget(std::size_t i) {
    const auto forget_in = [&](Row& row) {
      if (i >= row.blocks.size()) return;
      row.blocks[i] = {};
      row.shifts[i] = row.fine[i] = kNone;
      regroup(row, (evicted_ + i) / kGroup);
      row.levels.forget(begin_ns(i), end_ns(i));
    };
    forget_in(waits_);
    for (Row& row : rows_) forget_in(row);
  }
  /// Removes the first `n` blocks: the next one becomes block 0. Levels of detail of the whole
  /// row stay.
  void evict(std::size_t n) {
    const auto drop = [](auto& list, std::size_t count) {
      list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(count, list.size())));
    };
    const std::size_t groups = (evicted_ + n) / kGroup;
    evicted_ = (evicted_ + n) % kGroup;
    const auto evict_from = [&](Row& row) {
      drop(row.blocks, n);
      drop(row.shifts, n);
      drop(row.fine, n);
      drop(row.groups, groups);
      if (!row.groups.empty()) regroup(row, 0);
    };
    evict_from(waits_);
    for (Row& row : rows_) evict_from(row);
    drop(begins_, n);
    drop(ends_, n);
  }
  /// About what append() adds to bytes().
  [[nodiscard]] std::size_t bytes_per_block() const noexcept {
    // Two buckets per leaf: the upper levels have about as many as the leaves.
    constexpr std::size_t kRow = sizeof(DensityBucket) * (2 + 2 * kLeavesPerBlock) + 2;
    return 2 * sizeof(std::int64_t) + (rows_.size() + (waits_.levels.empty() ? 0 : 1)) * kRow;
  }
  [[nodiscard]] std::int64_t begin_ns(std::size_t i) const { return begins_[i]; }
  [[nodiscard]] std::int64_t end_ns(std::size_t i) const { return std::max(begins_[i], ends_[i]); }
  /// The lane's latest event up to a block's end; Lane::kNever: none.
  [[nodiscard]] std::int64_t latest_ns(std::size_t i) const { return ends_[i]; }
  /// The first block that ends at `ns` or later; the first that begins then or later.
  [[nodiscard]] std::size_t first_ending(std::int64_t ns) const { return first(ends_, 0, ns); }
  [[nodiscard]] std::size_t first_beginning(std::int64_t ns, std::size_t from) const {
    return first(begins_, from, ns);
  }
  /// Levels of detail over all blocks; empty where there are none.
  [[nodiscard]] const DensityPyramid& levels(std::size_t depth) const {
    const Row& row = this->row(depth);
    row.levels.settle();
    return row.levels;
  }
  /// shift() of a block's own, coarse levels of detail; kNone: nothing in this row.
  static constexpr std::uint8_t kNone = 255;
  [[nodiscard]] std::uint8_t shift(std::size_t depth, std::size_t i) const {
    const std::vector<std::uint8_t>& shifts = row(depth).shifts;
    return i < shifts.size() ? shifts[i] : kNone;
  }
  /// shift() of its page's levels of detail; kNone: unknown.
  [[nodiscard]] std::uint8_t fine_shift(std::size_t depth, std::size_t i) const {
    const std::vector<std::uint8_t>& shifts = row(depth).fine;
    return i < shifts.size() ? shifts[i] : kNone;
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t bytes = (begins_.capacity() + ends_.capacity()) * sizeof(std::int64_t) + waits_.bytes();
    for (const Row& row : rows_) bytes += sizeof row + row.bytes();
    return bytes;
  }
  /// Adds blocks [first, last) of a row to `sum`.
  void add_to(DensityBucket& sum, std::size_t depth, std::size_t first, std::size_t last) const {
    const Row& row = this->row(depth);
    last = std::min(last, row.blocks.size());
    while (first < last) {
      if ((evicted_ + first) % kGroup == 0 && first + kGroup <= last) {
        sum.merge(row.groups[(evicted_ + first) / kGroup]);
        first += kGroup;
      } else {
        sum.merge(row.blocks[first]);
        ++first;
      }
    }
  }

 private:
  struct Row {
    std::vector<DensityBucket> blocks, groups;
    std::vector<std::uint8_t> shifts, fine;
    mutable DensityPyramid levels;  ///< settled on access, not after each of many blocks
    [[nodiscard]] std::size_t bytes() const noexcept {
      return levels.bytes() + shifts.capacity() + fine.capacity() +
             (blocks.capacity() + groups.capacity()) * sizeof(DensityBucket);
    }
  };
  /// Recomputes group `g` from its blocks.
  void regroup(Row& row, std::size_t g) const {
    const std::size_t end =
        std::min((g + 1) * kGroup - std::min(evicted_, (g + 1) * kGroup), row.blocks.size());
    DensityBucket& group = row.groups[g] = {};
    for (std::size_t b = g * kGroup - std::min(evicted_, g * kGroup); b < end; ++b)
      group.merge(row.blocks[b]);
  }
  [[nodiscard]] const Row& row(std::size_t depth) const {
    static const Row none;
    if (depth == Store::kWaits) return waits_;
    return depth < rows_.size() ? rows_[depth] : none;
  }
  [[nodiscard]] static std::size_t first(const std::vector<std::int64_t>& times, std::size_t from,
                                         std::int64_t ns) {
    return static_cast<std::size_t>(
        std::lower_bound(times.begin() + static_cast<std::ptrdiff_t>(from), times.end(), ns) - times.begin());
  }
  std::vector<Row> rows_;  ///< by depth
  Row waits_;
  std::vector<std::int64_t> begins_, ends_;  ///< by block
  std::size_t evicted_ = 0;                  ///< evicted blocks of the first group
  bool fine_taken_ = false;                  ///< append_fine() has added the next block
};

}  // namespace shardscope::store
