// The partition map's range of elements by keyboard: onto the selected parameter, and nearer or farther.
#pragma once

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

/// Shows the selected parameter with a margin; where that is shown already, the whole model. False: none is
/// selected.
bool zoom_to_param(AppState& app);
/// Around the selected parameter where it is in view, else around the middle. `factor` below 1 shows less.
void zoom_elements(AppState& app, double factor);

}  // namespace shardscope::gui
