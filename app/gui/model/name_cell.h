// A path as a cell of a list.
#pragma once

#include <string>

#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

class NameCells {
 public:
  explicit NameCells(const store::Store& store);
  /// Without the model's own name in front; whole under the pointer.
  [[nodiscard]] Cell cell(const std::string& name) const;

 private:
  std::string
      model_;  ///< with its dot: the part that every path begins with; empty: they have none in common
};

}  // namespace shardscope::gui
