// The range that figures of a range cover: the measured one, else what the timeline shows.
#pragma once

#include <string>

#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

struct AppState;

struct PanelRange {
  TimeRange range;
  bool measured = false;
};
[[nodiscard]] PanelRange panel_range(const AppState& app);
/// "measured range, 1.24 ms" or "range shown, 1.24 ms".
[[nodiscard]] std::string text_of(const PanelRange& shown);

}  // namespace shardscope::gui
