#include "app/store/table_checksums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <string_view>

#include "app/store/crc32.h"

namespace shardscope::store {
namespace {

/// [Note: what a checksum covers]
/// Each covers the rows of its query, in the query's order: a row that is missing, added, changed
/// or under another key changes it. The order is the table's own key, because SQLite may return any order.
/// Columns are named where some are left out: blobs begin with their own checksum, which is checked with the
/// blob, so here their first four bytes represent them and the file is not read twice.
/// Pages and indices that no row uses are covered by SQLite's own check (check_pages).
struct Checked {
  const char* table;  ///< key in `meta` after "crc:"; "blobs_" before a table's name: its blobs
  const char* query;
  const char* what;  ///< consequence of a checksum that does not match
};

constexpr const char* kValues =
    "do not believe what SQL says of it (what Shardscope shows is made from the events)";
constexpr const char* kKeys = "rows of it are missing, added or under a wrong key";
constexpr const char* kPlaces = "what lies in a row of it is not what was written there";
constexpr const char* kShape = "what SQL calls tables and columns is not what was written";

/// Ordered by row id or primary key.
constexpr std::array kChecked = {
    Checked{"meta",
            "SELECT key, value FROM meta WHERE key IN ('chunks', 'complete', 'events', 'origin_ns') ORDER BY "
            "key",
            kValues},
    Checked{"run", "SELECT * FROM run ORDER BY rowid", kValues},
    Checked{"modules", "SELECT * FROM modules ORDER BY id", kValues},
    Checked{"params", "SELECT * FROM params ORDER BY id", kValues},
    Checked{"module_params", "SELECT * FROM module_params ORDER BY module, position", kValues},
    Checked{"slices", "SELECT * FROM slices ORDER BY rowid", kValues},
    Checked{"steps", "SELECT * FROM steps ORDER BY step", kValues},
    Checked{"memory_peaks", "SELECT * FROM memory_peaks ORDER BY rank, pool, category", kValues},
    Checked{"span_summary", "SELECT * FROM span_summary ORDER BY rank, stream, kind, code", kValues},
    Checked{"gaps", "SELECT * FROM gaps ORDER BY rowid", kValues},
    // Rows of these have checksums of their own, which do not cover their keys nor missing
    // rows.
    Checked{"chunks",
            "SELECT id, rank, sequence, begin_ns, end_ns, clock_offset_ns, clock_residual_ns, events, "
            "dropped_before, lost_before, parts FROM chunks ORDER BY id",
            kValues},
    Checked{"blocks", "SELECT id FROM blocks ORDER BY id", kKeys},
    Checked{"levels", "SELECT id FROM levels ORDER BY id", kKeys},
    Checked{"tiles", "SELECT id FROM tiles ORDER BY id", kKeys},
    Checked{"tails", "SELECT rank FROM tails ORDER BY rank", kKeys},
    Checked{"tables", "SELECT rank, crc FROM tables ORDER BY rank", kKeys},
    Checked{"ranks", "SELECT rank, crc FROM ranks ORDER BY rank", kKeys},
    Checked{"messages", "SELECT id, crc FROM messages ORDER BY id", kKeys},
    Checked{"names", "SELECT rank, id, crc FROM names ORDER BY rank, id", kKeys},
    Checked{"sqlite_schema", "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
            kShape},
    Checked{"header", "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version",
            "the file says another format version than it was written in"},
    // Which blob is in which row. A blob begins with its own checksum, which represents it here: blobs
    // that were exchanged are valid, but in the wrong place.
    Checked{"blobs_blocks", "SELECT id, substr(bytes, 1, 4) FROM blocks ORDER BY id", kPlaces},
    Checked{"blobs_levels", "SELECT id, substr(bytes, 1, 4), substr(statuses, 1, 4) FROM levels ORDER BY id",
            kPlaces},
    Checked{"blobs_tiles", "SELECT id, substr(bytes, 1, 4) FROM tiles ORDER BY id", kPlaces},
    Checked{"blobs_tails",
            "SELECT rank, substr(bytes, 1, 4), substr(statuses, 1, 4) FROM tails ORDER BY rank", kPlaces},
    Checked{"models", "SELECT * FROM models ORDER BY id", kValues},
    Checked{"process_groups", "SELECT * FROM process_groups ORDER BY rank, id", kValues},
    Checked{"lane_names", "SELECT * FROM lane_names ORDER BY rank, lane", kValues},
};

/// In addition, for recordings that keep a part of their run.
constexpr std::array kCheckedOfPart = {
    Checked{"sums",
            "SELECT id, rank, sequence, begin_ns, end_ns, events, parts, substr(bytes, 1, 4) FROM sums ORDER "
            "BY id",
            kValues},
    Checked{"sum_steps", "SELECT * FROM sum_steps ORDER BY step", kValues},
    Checked{"moments", "SELECT * FROM moments ORDER BY id", kValues},
    Checked{"sketches", "SELECT * FROM sketches ORDER BY rank, stream, kind, code, module", kValues},
};

/// In addition, for runs with parameter groups.
constexpr Checked kCheckedParamGroups{"param_groups", "SELECT * FROM param_groups ORDER BY id", kValues};

/// In addition to those of a part of a run; recordings older than own times do not have it.
constexpr Checked kCheckedOwnTimes{"own_times", "SELECT * FROM own_times ORDER BY rank, first_step", kValues};

/// In addition, for a part of a recording that goes on in several files.
constexpr std::array kCheckedOfSeries = {
    Checked{"parts", "SELECT * FROM parts ORDER BY part", kValues},
    Checked{"moved", "SELECT id FROM moved ORDER BY id", kKeys},
    Checked{"meta_part",
            "SELECT key, value FROM meta WHERE key IN ('first_chunk', 'first_part', 'followed', 'part', "
            "'series') ORDER BY key",
            "what the file says of its part may be wrong"},
};

/// Optional tables are checked only where they exist: a missing one
/// changes the checksum of sqlite_schema.
bool has_table(Database& database, const std::string& table) {
  return database.integer("SELECT count(*) FROM sqlite_schema WHERE name = '" + table + "'") != 0;
}
bool keeps_a_part(Database& database) { return has_table(database, "sums"); }

void append_value(const Statement& row, int column, std::string& text) {
  switch (row.type(column)) {
    case Statement::Type::null:
      text += 'n';
      break;
    case Statement::Type::integer:
      text += 'i' + std::to_string(row.integer(column));
      break;
    case Statement::Type::real: {
      // The bits: a decimal text with too few digits could be the same for two doubles.
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

/// Checksums in the file, by name; rows_crc() returns 32 bits, SQL integers have 64.
using Sums = std::map<std::string, std::int64_t>;

void check_sum(Database& database, const Checked& checked, const Sums& sums,
               std::vector<std::string>& problems) {
  constexpr std::string_view kBlobsOf = "blobs_";
  std::string_view table = checked.table;
  if (table.starts_with(kBlobsOf)) table.remove_prefix(kBlobsOf.size());
  const std::string which = "table " + std::string(table) + ": ";
  const auto sum = sums.find(checked.table);
  // One damaged table must not hide damage of the others.
  try {
    if (sum == sums.end()) {
      problems.push_back(which + "its checksum is missing");
    } else if (rows_crc(database, checked.query) != sum->second) {
      problems.push_back(which + "checksum does not match; " + checked.what);
    }
  } catch (const DatabaseError& error) {
    problems.push_back(which + "the file is damaged there (" + error.what() + ")");
  }
}

void check_sums(Database& database, std::vector<std::string>& problems) {
  Sums sums;
  Statement rows = database.prepare("SELECT key, value FROM meta WHERE key GLOB 'crc:*'");
  while (rows.step()) sums[rows.text(0).substr(4)] = rows.integer(1);
  if (sums.empty()) {  // they are written when a recording ends
    if (database.integer("SELECT count(*) FROM meta WHERE key = 'complete' AND value = 1") != 0)
      problems.push_back("the checksums of its tables are missing");
    return;
  }
  for (const Checked& checked : kChecked) check_sum(database, checked, sums, problems);
  if (has_table(database, kCheckedParamGroups.table))
    check_sum(database, kCheckedParamGroups, sums, problems);
  if (has_table(database, kCheckedOwnTimes.table)) check_sum(database, kCheckedOwnTimes, sums, problems);
  if (has_table(database, "parts")) {
    for (const Checked& checked : kCheckedOfSeries) check_sum(database, checked, sums, problems);
  }
  if (!keeps_a_part(database)) return;
  for (const Checked& checked : kCheckedOfPart) check_sum(database, checked, sums, problems);
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
  const auto write = [&](const Checked& checked) {
    put.bind(1, std::string("crc:") + checked.table)
        .bind(2, std::int64_t{rows_crc(database, checked.query)})
        .run();
  };
  std::for_each(kChecked.begin(), kChecked.end(), write);
  if (has_table(database, kCheckedParamGroups.table)) write(kCheckedParamGroups);
  if (has_table(database, kCheckedOwnTimes.table)) write(kCheckedOwnTimes);
  if (has_table(database, "parts")) std::for_each(kCheckedOfSeries.begin(), kCheckedOfSeries.end(), write);
  if (keeps_a_part(database)) std::for_each(kCheckedOfPart.begin(), kCheckedOfPart.end(), write);
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
