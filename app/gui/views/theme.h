// The dashboard's look as a style of ImGui.
#pragma once

#include <imgui.h>

#include "app/gui/model/palette.h"

namespace shardscope::gui {

/// A colour as ImGui and ImPlot take it.
[[nodiscard]] ImVec4 ink(Rgb color, float alpha = 1);

/// Colours, roundings and paddings of ImGui's own parts; to be called before a frame's first window.
void apply_theme(const Palette& colors);

}  // namespace shardscope::gui
