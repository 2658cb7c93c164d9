#include "app/gui/model/name_cell.h"

#include <string_view>

namespace shardscope::gui {

NameCells::NameCells(const store::Store& store) {
  if (!store.has_tables()) return;
  for (const auto& module : store.tables().modules) {
    const std::string_view path = module.path;
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos || dot + 1 == path.size()) continue;
    const std::string_view first = path.substr(0, dot + 1);
    const bool list = path[dot + 1] >= '0' && path[dot + 1] <= '9';
    if (list || (!model_.empty() && model_ != first)) {
      model_.clear();
      return;
    }
    model_ = first;
  }
}

Cell NameCells::cell(const std::string& name) const {
  const bool of_model = !model_.empty() && name.starts_with(model_);
  return {of_model ? name.substr(model_.size()) : name, {}, Tone::normal, {}, name};
}

}  // namespace shardscope::gui
