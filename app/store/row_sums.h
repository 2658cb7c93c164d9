// Sums of a lane's rows by block and by 64 blocks, for columns that hold whole blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

class RowSums {
 public:
  static constexpr std::size_t kGroup = 64;
  /// The next block's part of the lane.
  void append(const BlockLane& lane) {
    if (rows_.size() < lane.rows.size()) rows_.resize(lane.rows.size());
    for (std::size_t d = 0; d < lane.rows.size(); ++d) {
      Row& row = rows_[d];
      row.blocks.resize(blocks_ + 1);
      row.groups.resize(blocks_ / kGroup + 1);
      row.blocks[blocks_] = lane.rows[d].total();
      row.groups[blocks_ / kGroup].merge(row.blocks[blocks_]);
    }
    ++blocks_;
  }
  [[nodiscard]] DensityBucket block(std::size_t depth, std::size_t i) const {
    return depth < rows_.size() && i < rows_[depth].blocks.size() ? rows_[depth].blocks[i] : DensityBucket{};
  }
  [[nodiscard]] DensityBucket group(std::size_t depth, std::size_t i) const {
    return depth < rows_.size() && i < rows_[depth].groups.size() ? rows_[depth].groups[i] : DensityBucket{};
  }

 private:
  struct Row {
    std::vector<DensityBucket> blocks, groups;
  };
  std::vector<Row> rows_;  ///< by depth
  std::size_t blocks_ = 0;
};

}  // namespace shardscope::store
