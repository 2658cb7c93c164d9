#include "app/gui/model/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace shardscope::gui {
namespace {

/// Compares digits as numbers: "rank 9" before "rank 10".
bool before(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size() && k < b.size()) {
    if (digit(a[i]) && digit(b[k])) {
      const auto end = [&](const std::string& text, std::size_t at) {
        while (at < text.size() && digit(text[at])) ++at;
        return at;
      };
      const auto significant = [&](const std::string& text, std::size_t at, std::size_t until) {
        while (at + 1 < until && text[at] == '0') ++at;
        return text.substr(at, until - at);
      };
      const std::size_t a_end = end(a, i);
      const std::size_t b_end = end(b, k);
      const std::string x = significant(a, i, a_end);
      const std::string y = significant(b, k, b_end);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = a_end;
      k = b_end;
    } else if (a[i] != b[k]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[k]);
    } else {
      ++i;
      ++k;
    }
  }
  return a.size() - i < b.size() - k;
}

void append_field(std::string& out, const std::string& text) {
  for (const char c : text) out += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
}

}  // namespace

std::vector<Cell>& Table::add(std::vector<Cell> cells) {
  cells.resize(columns.size());
  return rows.emplace_back(std::move(cells));
}

Cell number_cell(std::optional<double> value, std::string text) {
  if (value && std::isfinite(*value)) return {std::move(text), value, Tone::normal, std::nullopt, ""};
  return {"\u2013", NAN, Tone::muted, std::nullopt, ""};
}

std::vector<std::size_t> sorted_rows(const Table& table, std::size_t column, bool descending) {
  std::vector<std::size_t> order(table.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (column >= table.columns.size()) return order;
  std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) {
    const Cell& a = table.rows[left][column];
    const Cell& b = table.rows[right][column];
    const bool a_missing = a.value && std::isnan(*a.value);
    const bool b_missing = b.value && std::isnan(*b.value);
    if (a_missing || b_missing) return !a_missing && b_missing;
    const Cell& first = descending ? b : a;
    const Cell& second = descending ? a : b;
    if (first.value && second.value) return *first.value < *second.value;
    return before(first.text, second.text);
  });
  return order;
}

std::string tab_separated(const Table& table, std::span<const std::size_t> rows) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) out += '\t';
    append_field(out, table.columns[i].name);
  }
  out += '\n';
  for (const std::size_t row : rows) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) out += '\t';
      append_field(out, table.rows[row][i].text);
    }
    out += '\n';
  }
  return out;
}

std::string comma_separated(const Table& table, std::span<const std::size_t> rows) {
  std::string out;
  const auto field = [&](std::string text, bool number, bool last) {
    if (!number && !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos)
      text.insert(0, "'");
    if (text.find_first_of(",\"\r\n") != std::string::npos) {
      for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, "\"");
      text = '"' + text + '"';
    }
    out += text + (last ? "\r\n" : ",");
  };
  const std::size_t count = table.columns.size();
  for (std::size_t i = 0; i < count; ++i) field(table.columns[i].name, false, i + 1 == count);
  for (const std::size_t row : rows)
    for (std::size_t i = 0; i < count; ++i)
      field(table.rows[row][i].text, table.columns[i].number, i + 1 == count);
  return out;
}

}  // namespace shardscope::gui
