// The state of the model layer, as JSON: end-to-end tests drive the window and read this.
#pragma once

#include <string>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

/// Where the last frame put its panels, so that a test can aim at them, in window pixels.
struct PlacedForDump {
  std::string name;
  Rect rect;
  std::vector<std::string> shows = {};  ///< what is chosen of its choices
  bool apart = false;                   ///< in a window of its own, outside the main one
  [[nodiscard]] bool operator==(const PlacedForDump&) const = default;
};

[[nodiscard]] std::string state_json(const AppState& app, const std::vector<PlacedForDump>& panels,
                                     std::uint64_t frames);
/// Writes beside and renames, so that a reader never sees half a file. Returns false when it cannot.
[[nodiscard]] bool write_state(const std::string& path, const std::string& json);

}  // namespace shardscope::gui
