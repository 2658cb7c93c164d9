// Name of a lane: as recorded by the run, else the built-in one.
#pragma once

#include <string>

#include "app/store/names.h"
#include "app/store/store.h"

namespace shardscope::store {

/// The name that the rank gave the lane; empty: none.
[[nodiscard]] inline std::string given_lane_name(const Store& store, LaneId lane) {
  if (const ev::RunTables* own = store.rank_tables(lane.rank)) {
    for (const ev::LaneName& named : own->lanes) {
      if (named.lane == lane.stream) return named.name;
    }
  }
  return {};
}

[[nodiscard]] inline std::string lane_name(const Store& store, LaneId lane) {
  const std::string given = given_lane_name(store, lane);
  return given.empty() ? name_of(lane.stream) : given;
}

}  // namespace shardscope::store
