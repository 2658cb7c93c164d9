// Levels of nesting shown of single lanes, as the user has chosen: deeper ones are hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// By lane: the number of levels that are shown, at least 1. Lanes that are missing show all.
/// Copies share the levels: with thousands of lanes the history of places has many.
class LaneCrops {
 public:
  using Levels = std::map<store::LaneId, std::uint8_t>;
  LaneCrops() = default;
  explicit LaneCrops(Levels levels);
  LaneCrops(std::initializer_list<Levels::value_type> levels) : LaneCrops(Levels(levels)) {}
  [[nodiscard]] const Levels& levels() const;
  [[nodiscard]] bool empty() const { return levels_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return levels().size(); }
  void clear() { levels_.reset(); }
  friend bool operator==(const LaneCrops& a, const LaneCrops& b) {
    return a.levels_ == b.levels_ || a.levels() == b.levels();
  }

 private:
  std::shared_ptr<const Levels> levels_;  ///< null: empty
};

/// The levels of a lane that are shown out of `all`.
[[nodiscard]] std::uint8_t levels_shown(const LaneCrops& crops, store::LaneId lane, std::uint8_t all);
/// Shows that many levels of the lane; all of them if it has no more.
void crop(LaneCrops& crops, const store::Store& store, store::LaneId lane, std::uint8_t levels);
/// The same number for the lane of that stream on every rank.
void crop_everywhere(LaneCrops& crops, const store::Store& store, ev::StreamId stream, std::uint8_t levels);
/// "deeper levels of 2 lanes"; empty: none is hidden.
[[nodiscard]] std::string cropped_text(const LaneCrops& crops);

/// For the settings file: "0:1:2,1:1:2", rank, stream and levels. Invalid entries are left out.
[[nodiscard]] std::string crops_line(const LaneCrops& crops);
[[nodiscard]] LaneCrops crops_from(std::string_view text);

}  // namespace shardscope::gui
