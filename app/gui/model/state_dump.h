// State of the model layer as JSON, for end-to-end tests that drive the window.
#pragma once

#include <string>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

/// Position of a panel in the last frame, in window pixels, so that a test can click on it.
struct PlacedForDump {
  std::string name;
  Rect rect;
  std::vector<std::string> shows = {};  ///< chosen labels of its choices
  bool apart = false;                   ///< in a separate window, outside the main one
  bool focused = false;                 ///< has the keyboard
  [[nodiscard]] bool operator==(const PlacedForDump&) const = default;
};

[[nodiscard]] std::string state_json(const AppState& app, const std::vector<PlacedForDump>& panels,
                                     std::uint64_t frames);
/// Writes a temporary file and renames it, so that readers never see a partial file. False on failure.
[[nodiscard]] bool write_state(const std::string& path, const std::string& json);

}  // namespace shardscope::gui
