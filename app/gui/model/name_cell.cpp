#include "app/gui/model/name_cell.h"

#include "app/gui/model/names.h"

namespace shardscope::gui {

Cell name_cell(const std::string& name) { return {std::string(tail_path(name)), {}, Tone::normal, {}, name}; }

}  // namespace shardscope::gui
