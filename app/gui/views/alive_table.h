// What was alive, or changed, as a table of ImGui with a tree: category, block of the model, owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/alive_memory.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class AliveTable {
 public:
  enum class Columns : std::uint8_t { alive, difference };
  /// Returns the time that was clicked: since when something is alive.
  std::optional<std::int64_t> draw(Context& ctx, const char* id, const Rect& room,
                                   const std::vector<AliveNode>& nodes, Columns columns);

 private:
  void rows(Context& ctx, const std::vector<AliveNode>& nodes, Columns columns, std::int64_t whole,
            int depth);
  std::optional<std::int64_t> clicked_;
  bool enter_ = false;  ///< an arrow has come to the table: its first row is given the keyboard
};

}  // namespace shardscope::gui
