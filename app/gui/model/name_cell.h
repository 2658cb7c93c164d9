// A path as a cell of a list.
#pragma once

#include <string>

#include "app/gui/model/table.h"

namespace shardscope::gui {

/// Without the model's own name, which is whole under the pointer.
[[nodiscard]] Cell name_cell(const std::string& name);

}  // namespace shardscope::gui
