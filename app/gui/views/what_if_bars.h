// The step times of a what-if as bars.
#pragma once

#include "app/gui/model/what_if.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// On one scale: recorded, modelled with the recorded settings, predicted. Takes its height from `room`.
void draw_step_times(Context& ctx, Rect& room, const WhatIfResult& result);

}  // namespace shardscope::gui
