// List for choosing the module, parameter or step to run to.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

void pick_run_to(Context& ctx, const Rect& anchor, RunToKind kind);

}  // namespace shardscope::gui
