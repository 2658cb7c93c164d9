// The theme as ImGui style.
#pragma once

#include <imgui.h>

#include "app/gui/model/palette.h"

namespace shardscope::gui {

/// Converts a colour for ImGui and ImPlot.
[[nodiscard]] ImVec4 ink(Rgb color, float alpha = 1);

/// Sets colours, roundings and paddings of ImGui's widgets; call before a frame's first window.
void apply_theme(const Palette& colors);

}  // namespace shardscope::gui
