// Rows of the partition map: the timeline's ranks, in its order, groups and filter.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/timeline_rows.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct MapRow {
  std::uint32_t rank = ev::kNoId;  ///< kNoId: the title of a group
  std::string title;
  float y = 0, height = 0;  ///< pixels; y from the top of the map
  bool named = true;        ///< there is room for its number beside it
};
struct MapRows {
  std::vector<MapRow> rows;
  float height = 0;
  /// Null: the rank is hidden by the filter, or not of this run.
  [[nodiscard]] const MapRow* of(std::uint32_t rank) const noexcept;
};

/// Rows that fill `room` (its height in pixels) where they can. Where full rows do not fit they are low,
/// unless the timeline's are set to full height; a map that is higher than its room is scrolled. Ranks that
/// have not connected follow the others.
[[nodiscard]] MapRows map_rows(const store::Store& store, const TimelineOptions& options, float room);

/// Heading and text in place of the map while no rank has described its parameters, or if none ever will.
[[nodiscard]] std::pair<std::string, std::string> no_partition(const store::Store& store);

}  // namespace shardscope::gui
