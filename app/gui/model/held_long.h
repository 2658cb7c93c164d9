// The table of gathered parameters that were held after their last use (app/analysis/held_long.h).
#pragma once

#include "app/analysis/held_long.h"
#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

using analysis::held_long;
using analysis::HeldLong;
using analysis::HeldParam;

[[nodiscard]] Table held_table(const store::Store& store, const HeldLong& held);

}  // namespace shardscope::gui
