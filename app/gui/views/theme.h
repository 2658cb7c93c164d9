// The dashboard's look as a style of ImGui.
#pragma once

#include "app/gui/model/palette.h"

namespace shardscope::gui {

/// Colours, roundings and paddings of ImGui's own parts; to be called before a frame's first window.
void apply_theme(const Palette& colors);

}  // namespace shardscope::gui
