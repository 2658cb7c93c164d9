#include "app/store/table_checksums.h"

#include <array>
#include <bit>
#include <cstdio>
#include <map>

#include "app/store/crc32.h"

namespace shardscope::store {
namespace {

struct Checked {
  const char* table;
  const char* query;
};

/// In an order that the table itself has: by row or by its primary key.
constexpr std::array kChecked = {
    Checked{"meta",
            "SELECT key, value FROM meta WHERE key IN ('chunks', 'complete', 'events', 'origin_ns') ORDER BY "
            "key"},
    Checked{"run", "SELECT * FROM run ORDER BY rowid"},
    Checked{"modules", "SELECT * FROM modules ORDER BY id"},
    Checked{"params", "SELECT * FROM params ORDER BY id"},
    Checked{"module_params", "SELECT * FROM module_params ORDER BY module, position"},
    Checked{"slices", "SELECT * FROM slices ORDER BY rowid"},
    Checked{"steps", "SELECT * FROM steps ORDER BY step"},
    Checked{"memory_peaks", "SELECT * FROM memory_peaks ORDER BY rank, pool, category"},
    Checked{"span_summary", "SELECT * FROM span_summary ORDER BY rank, stream, kind, code"},
    Checked{"gaps", "SELECT * FROM gaps ORDER BY rowid"},
};

void append_value(const Statement& row, int column, std::string& text) {
  switch (row.type(column)) {
    case Statement::Type::null:
      text += 'n';
      break;
    case Statement::Type::integer:
      text += 'i' + std::to_string(row.integer(column));
      break;
    case Statement::Type::real: {
      char digits[17];
      std::snprintf(digits, sizeof digits, "%016llx",
                    static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(row.real(column))));
      text += 'r';
      text += digits;
      break;
    }
    case Statement::Type::text:
      text += 't' + row.text(column);
      break;
    case Statement::Type::bytes: {
      const std::span<const std::byte> bytes = row.bytes(column);
      text += 'b';
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      break;
    }
  }
  text += '\x1f';
}

void check_sums(Database& database, std::vector<std::string>& problems) {
  std::map<std::string, std::int64_t> sums;
  Statement rows = database.prepare("SELECT key, value FROM meta WHERE key GLOB 'crc:*'");
  while (rows.step()) sums[rows.text(0).substr(4)] = rows.integer(1);
  if (sums.empty()) return;  // written before there were any
  for (const Checked& checked : kChecked) {
    const std::string which = std::string("table ") + checked.table + ": ";
    const auto sum = sums.find(checked.table);
    try {
      if (sum == sums.end()) {
        problems.push_back(which + "its checksum is missing");
      } else if (rows_crc(database, checked.query) != sum->second) {
        problems.push_back(
            which +
            "checksum does not match; do not believe what SQL says of it (what Shardscope shows "
            "is made from the events)");
      }
    } catch (const DatabaseError& error) {
      problems.push_back(which + "the file is damaged there (" + error.what() + ")");
    }
  }
}

void check_pages(Database& database, std::vector<std::string>& problems) {
  constexpr int kMost = 10;
  int found = 0;
  std::string first;
  Statement rows = database.prepare("PRAGMA integrity_check(" + std::to_string(kMost) + ")");
  while (rows.step()) {
    const std::string text = rows.text(0);
    if (text == "ok") continue;
    if (found++ == 0) first = text;
  }
  if (found == 0) return;
  std::string more;
  if (found > 1)
    more = " (and " + std::to_string(found - 1) + (found == kMost ? " more at least)" : " more)");
  problems.push_back("SQLite's check of the file: " + first + more);
}

}  // namespace

std::uint32_t rows_crc(Database& database, const std::string& query) {
  std::uint32_t crc = 0;
  std::string text;
  Statement rows = database.prepare(query);
  while (rows.step()) {
    text.clear();
    for (int column = 0; column < rows.columns(); ++column) append_value(rows, column, text);
    text += '\x1e';
    crc = crc32c(text, crc);
  }
  return crc;
}

void write_table_checksums(Database& database) {
  Statement put = database.prepare("INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
  for (const Checked& checked : kChecked) {
    put.bind(1, std::string("crc:") + checked.table)
        .bind(2, std::int64_t{rows_crc(database, checked.query)})
        .run();
  }
}

std::vector<std::string> check_tables(Database& database) {
  std::vector<std::string> problems;
  try {
    check_sums(database, problems);
    check_pages(database, problems);
  } catch (const DatabaseError& error) {
    problems.push_back(std::string("checking the tables: the file is damaged there (") + error.what() + ")");
  }
  return problems;
}

}  // namespace shardscope::store
