// Rows as last drawn: a frame with an unchanged view redraws only rows that can be refined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

class RowPictures {
 public:
  struct View {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::size_t columns = 0;
    std::uint64_t revision = 0;  ///< of the store
    friend bool operator==(const View&, const View&) = default;
  };
  struct Picture {
    View view;
    bool whole = false;  ///< nothing in it can be refined
    std::vector<Density> columns;
  };
  /// The row's picture, of whatever view, to be compared and replaced; valid until the next call.
  [[nodiscard]] Picture& of(LaneId lane, std::uint8_t depth, std::size_t columns) {
    if (held_ + columns > kMostColumns) {
      pictures_.clear();
      held_ = 0;
    }
    const std::uint64_t key =
        std::uint64_t{lane.rank} << 16 | static_cast<std::uint64_t>(lane.stream) << 8 | depth;
    Picture& picture = pictures_[key];
    if (picture.columns.size() < columns) {
      held_ += columns - picture.columns.size();
      picture.columns.resize(columns);
    }
    return picture;
  }

 private:
  /// 12 MiB: 650 rows of 1,600 columns. Rows beyond are drawn anew each time.
  static constexpr std::size_t kMostColumns = std::size_t{1} << 20;
  std::unordered_map<std::uint64_t, Picture> pictures_;
  std::size_t held_ = 0;
};

}  // namespace shardscope::store
