// Draws a Table (model/table.h) as a table of ImGui: sorted, resized, reordered and hidden by its heads, rows
// copied with Ctrl+C or from the menu of the right button.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/table.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Lasts over frames, with the panel that shows the table.
struct TableState {
  std::set<std::size_t> marked;  ///< rows that Ctrl and Shift added, for copying
  std::size_t last = 0;          ///< clicked, where a range begins
  std::optional<std::size_t> scroll_to;
  std::vector<std::size_t> order;            ///< rows as they were drawn last
  std::optional<std::size_t> sorted_column;  ///< that the user sorts by
  bool descending = false;
};

struct TableOptions {
  /// Draws a cell itself; true when it did.
  std::function<bool(std::size_t row, std::size_t column, const Rect& cell)> draw;
  std::optional<std::size_t> chosen;  ///< is what is selected
  float row_height = kTableRow;
};

struct TableHit {
  std::optional<std::size_t> clicked, hovered;
};

/// `id` also names what the settings file keeps of it: widths, order and hidden columns.
TableHit draw_table(Context& ctx, const char* id, const Rect& room, const Table& table, TableState& state,
                    const TableOptions& options = {});

/// Height of a table with all its rows.
[[nodiscard]] float table_height(const Table& table, float row_height = kTableRow);

}  // namespace shardscope::gui
