// A table as data: columns, rows and cells with sort keys. The window draws it with ImGui; sorting and
// copying are implemented here, where they can be tested.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/palette.h"

namespace shardscope::gui {

enum class Tone : std::uint8_t { normal, muted, good, bad, warning, accent };

struct Cell {
  std::string text;
  std::optional<double> value;  ///< sort key; nullopt: sorts by text
  Tone tone = Tone::normal;
  std::optional<Meaning> swatch;  ///< a square of this colour before the text
  std::string tip;                ///< tooltip; empty: the text, if it is cut
};

struct Column {
  std::string name;
  float weight = 1;      ///< share of the width
  bool number = false;   ///< right-aligned, tabular digits
  std::string tip = {};  ///< tooltip of the header: definition, unit, formula
  bool hidden = false;   ///< initially; the user can show it
  float smallest = 0;    ///< minimum width for custom drawing, in points
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as long as `columns`
  /// Appends a row of texts and numbers; missing cells are empty.
  std::vector<Cell>& add(std::vector<Cell> cells);
};

/// A number with its text and sort key. NaN and nullopt: "–", sorted last in either direction.
[[nodiscard]] Cell number_cell(std::optional<double> value, std::string text);

/// Row indexes in order of a column; stable, and unchanged if there is no such column.
[[nodiscard]] std::vector<std::size_t> sorted_rows(const Table& table, std::size_t column, bool descending);

/// Clipboard format of spreadsheets: a header line, cells separated by tabs.
[[nodiscard]] std::string tab_separated(const Table& table, std::span<const std::size_t> rows);

/// All rows as CSV (RFC 4180), as displayed. Cells that a spreadsheet would evaluate get a leading '.
[[nodiscard]] std::string comma_separated(const Table& table, std::span<const std::size_t> rows);

}  // namespace shardscope::gui
