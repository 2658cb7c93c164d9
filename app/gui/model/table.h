// A list as data: columns, rows and cells with what they are sorted by. The window draws it as a table of
// ImGui; sorting and copying are here, where they are tested.
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
  std::optional<double> value;  ///< numbers sort by it; without one the cell sorts by its text
  Tone tone = Tone::normal;
  std::optional<Meaning> swatch;  ///< a square of that colour in front
  std::string tip;                ///< under the pointer; empty: the text, where it is cut
};

struct Column {
  std::string name;
  float weight = 1;      ///< share of the width
  bool number = false;   ///< right-aligned, tabular digits
  std::string tip = {};  ///< of its head: definition, unit, formula
  bool hidden = false;   ///< until the user shows it
  float smallest = 0;    ///< width that what it draws itself needs, in points
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as long as `columns`
  /// A row of texts and numbers; what is left out is empty.
  std::vector<Cell>& add(std::vector<Cell> cells);
};

/// A number as it is shown and sorted. NaN and nullopt: "–", behind every number in either direction.
[[nodiscard]] Cell number_cell(std::optional<double> value, std::string text);

/// Rows in order of a column; equal ones, and all where there is no such column, keep their order.
[[nodiscard]] std::vector<std::size_t> sorted_rows(const Table& table, std::size_t column, bool descending);

/// Rows as a spreadsheet takes them from the clipboard: a line of heads, tabs between cells.
[[nodiscard]] std::string tab_separated(const Table& table, std::span<const std::size_t> rows);

/// Every row for a file (RFC 4180), as it is shown. What a spreadsheet would compute gets a ' before it.
[[nodiscard]] std::string comma_separated(const Table& table, std::span<const std::size_t> rows);

}  // namespace shardscope::gui
