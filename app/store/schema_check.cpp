#include "app/store/schema_check.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

namespace shardscope::store {
namespace {

/// Words by which a column or an index is more than a name and a type, or a table more than columns.
constexpr std::array<std::string_view, 14> kMore = {"VIRTUAL", "AS",         "GENERATED", "CHECK",  "DEFAULT",
                                                    "COLLATE", "REFERENCES", "FOREIGN",   "SELECT", "WHERE",
                                                    "TRIGGER", "CONSTRAINT", "CAST",      "RAISE"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

enum class Of : std::uint8_t { table, index };

/// Names, types and keys only. In a table every expression follows one of these words, so a damaged
/// name, which SQLite reports, is accepted; an index may have an expression itself, which needs other
/// characters or a parenthesis.
bool is_plain(std::string_view sql, Of of) {
  int depth = 0;
  for (std::size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    if (!is_word(c)) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (of == Of::index && (depth > 1 || std::string_view("(), \t\r\n").find(c) == std::string_view::npos))
        return false;
      ++i;
      continue;
    }
    std::string word;
    for (; i < sql.size() && is_word(sql[i]); ++i)
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(sql[i])));
    if (std::find(kMore.begin(), kMore.end(), word) != kMore.end()) return false;
  }
  return true;
}

}  // namespace

std::string foreign_object(Database& database) {
  Statement rows = database.prepare("SELECT type, name, rootpage, sql FROM sqlite_schema");
  while (rows.step()) {
    const std::string type = rows.text(0), name = rows.text(1);
    if (type != "table" && type != "index") return "it has a " + type + " named " + name;
    const bool made_by_sqlite = type == "index" && rows.type(3) == Statement::Type::null;  // of a primary key
    if (made_by_sqlite) continue;
    if (rows.integer(2) <= 0 || !is_plain(rows.text(3), type == "table" ? Of::table : Of::index)) {
      return "its " + type + " " + name + " is more than plain columns";
    }
  }
  return {};
}

}  // namespace shardscope::store
