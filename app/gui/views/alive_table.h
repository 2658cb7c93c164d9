// Live allocations or their changes as an ImGui tree table: category, block of the model, owner.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/alive_memory.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class AliveTable {
 public:
  enum class Columns : std::uint8_t { alive, difference };
  /// Returns the row that was clicked or on which Enter was pressed; null: none. Of `nodes`.
  const AliveNode* draw(Context& ctx, const char* id, const Rect& room, const std::vector<AliveNode>& nodes,
                        Columns columns);

 private:
  void rows(Context& ctx, const std::vector<AliveNode>& nodes, Columns columns, std::int64_t whole,
            int depth);
  const AliveNode* chosen_ = nullptr;
  bool enter_ = false;  ///< an arrow key has entered the table: focus its first row
};

}  // namespace shardscope::gui
