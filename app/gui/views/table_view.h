// Draws a Table (model/table.h) with ImGui: columns can be sorted, resized, reordered and hidden, rows copied
// with Ctrl+C or from the context menu.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/table.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// State of a table between frames, kept by the panel that shows it.
struct TableState {
  std::set<std::size_t> marked;  ///< rows selected for copying with Ctrl and Shift
  std::size_t last = 0;          ///< last row clicked, the anchor of a range
  std::optional<std::size_t> scroll_to;
  std::vector<std::size_t> order;            ///< row indexes in the order drawn last
  std::optional<std::size_t> sorted_column;  ///< chosen by the user
  bool descending = false;
};

struct TableOptions {
  /// Custom drawing of a cell; returns true if it has drawn it.
  std::function<bool(std::size_t row, std::size_t column, const Rect& cell)> draw;
  std::optional<std::size_t> chosen;  ///< row of the selection
  float row_height = kTableRow;
};

struct TableHit {
  std::optional<std::size_t> clicked, hovered;
};

/// `id` is also the key in the settings file for widths, order and hidden columns.
TableHit draw_table(Context& ctx, const char* id, const Rect& room, const Table& table, TableState& state,
                    const TableOptions& options = {});

/// Height of a table that shows all its rows.
[[nodiscard]] float table_height(const Table& table, float row_height = kTableRow);

}  // namespace shardscope::gui
